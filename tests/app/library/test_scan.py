"""Models are found where other programs keep them, named readably, listed once, in bounded time."""

import json
import os
import sys

import pytest

from app.library import described, models, scan
from app.library.places import Place, places
from engine.gguf import piece_paths
from tests.make.bounds import bounded

needs_links = pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")


def model(path, content=b"GGUF"):
    """Make a file that looks like a model and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def ollama(root, name, tag, content=b"GGUF", registry="registry.ollama.ai", sign="-"):
    """Make an Ollama model: a manifest and the blob that it names."""
    digest = f"{abs(hash((name, tag, content))):064x}"[-64:]
    blob = model(root / "blobs" / f"sha256{sign}{digest}", content)
    layers = [
        {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:" + "0" * 64},
        {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}"},
    ]
    manifest = root / "manifests" / registry / name / tag
    manifest.parent.mkdir(parents=True, exist_ok=True)
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))
    return blob


def found(tmp_path, *added, **given):
    """Scan the places of a home folder under `tmp_path` and return the models by name."""
    given = {"environment": {}, "system": "linux", "home": tmp_path / "home"} | given
    known = places(tmp_path / "own", [str(folder) for folder in added], **given)
    inside = [place for place in known if place.path.is_relative_to(tmp_path)]
    result = scan(inside, piece_paths)
    assert len({each.name for each in result.models}) == len(result.models)
    return {each.name: each for each in result.models}, result


def test_every_program_on_linux(tmp_path):
    home = tmp_path / "home"
    expected = {
        "mine": model(tmp_path / "own" / "mine.gguf"),
        "added": model(tmp_path / "Größe 模型" / "deep" / "added.GGUF"),
        "llama3.2:1b": ollama(home / ".ollama/models", "library/llama3.2", "1b"),
        "user/own:latest": ollama(home / ".ollama/models", "user/own", "latest", sign=":"),
        "hf.co/bartowski/x:Q4_K_M": ollama(
            home / ".ollama/models", "bartowski/x", "Q4_K_M", registry="hf.co"
        ),
        "qwen": model(home / ".lmstudio/models/org/repo/qwen.gguf"),
        "older": model(home / ".cache/lm-studio/models/org/repo/older.gguf"),
        "hub": model(home / ".cache/huggingface/hub/models--o--r/snapshots/ab/hub.gguf"),
        "o_r_l": model(home / ".cache/llama.cpp/o_r_l.gguf"),
        "gpt": model(home / ".local/share/nomic.ai/GPT4All/gpt.gguf"),
        "jan-nano": model(home / ".config/Jan/data/llamacpp/models/jan-nano/model.gguf"),
    }
    by_name, result = found(tmp_path, tmp_path / "Größe 模型")
    assert {name: each.path for name, each in by_name.items()} == expected
    assert not result.was_cut and result.missing == []
    programs = {name: each.place.program for name, each in by_name.items()}
    assert programs["llama3.2:1b"] == "Ollama" and programs["jan-nano"] == "Jan"
    assert programs["added"] == "" and by_name["added"].place.is_added


@pytest.mark.parametrize(
    "system, where",
    [
        ("win32", "AppData/Local/nomic.ai/GPT4All"),
        ("win32", "AppData/Roaming/Jan/data/models"),
        ("win32", "AppData/Local/llama.cpp"),
        ("darwin", "Library/Application Support/nomic.ai/GPT4All"),
        ("darwin", "Library/Application Support/Jan/data"),
        ("darwin", "Library/Caches/llama.cpp"),
    ],
)
def test_other_systems(tmp_path, system, where):
    path = model(tmp_path / "home" / where / "m.gguf")
    by_name, _ = found(tmp_path, system=system)
    assert by_name["m"].path == path


@pytest.mark.parametrize(
    "variable, below",
    [
        ("OLLAMA_MODELS", None),
        ("HF_HOME", "hub/models--o--r/snapshots/1"),
        ("HF_HUB_CACHE", "models--o--r/snapshots/1"),
        ("HUGGINGFACE_HUB_CACHE", "models--o--r/snapshots/1"),
        ("LLAMA_CACHE", ""),
        ("XDG_CACHE_HOME", "huggingface/hub/x"),
        ("XDG_DATA_HOME", "nomic.ai/GPT4All"),
    ],
)
def test_moved_folders(tmp_path, variable, below):
    moved = tmp_path / "moved"
    if below is None:
        path, name = ollama(moved, "library/m", "1b"), "m:1b"
    else:
        path, name = model(moved / below / "m.gguf"), "m"
    by_name, _ = found(tmp_path, environment={variable: str(moved)})
    assert by_name[name].path == path


def test_lm_studio_says_where_it_moved(tmp_path):
    home = tmp_path / "home"
    moved = tmp_path / "elsewhere"
    (moved / "lm").mkdir(parents=True)
    home.mkdir()
    (home / ".lmstudio-home-pointer").write_text(str(moved / "lm"))
    (moved / "lm" / "settings.json").write_text(json.dumps({"downloadsFolder": str(moved / "d")}))
    expected = {
        "a": model(moved / "lm" / "models" / "o" / "r" / "a.gguf"),
        "b": model(moved / "d" / "o" / "r" / "b.gguf"),
    }
    by_name, _ = found(tmp_path)
    assert {name: each.path for name, each in by_name.items()} == expected
    for damage in ("[1]", "{", '{"downloadsFolder": 3}', '{"downloadsFolder": "\\u0000"}'):
        (moved / "lm" / "settings.json").write_text(damage)
        assert list(found(tmp_path)[0]) == ["a"]


def test_split_models_are_one_entry(tmp_path):
    for i in (1, 2, 3):
        model(tmp_path / "own" / f"big-0000{i}-of-00003.gguf", b"x" * i)
    model(tmp_path / "own" / "cut-00002-of-00002.gguf")
    model(tmp_path / "own" / "single-00001-of-00001.gguf")
    by_name, _ = found(tmp_path)
    assert list(by_name) == ["big", "cut", "single-00001-of-00001"]
    big = by_name["big"]
    assert (big.path.name, big.n_bytes, len(big.paths)) == ("big-00001-of-00003.gguf", 6, 3)
    assert big.problem == ""
    assert by_name["cut"].problem == (
        "Piece 1 of 2 of this model is missing: put “cut-00001-of-00002.gguf” into the same folder."
    )


@needs_links
def test_one_file_in_two_places_is_listed_once(tmp_path):
    blob = model(tmp_path / "home/.cache/huggingface/hub/models--o--r/blobs/abc")
    for revision in ("1", "2"):
        link = tmp_path / f"home/.cache/huggingface/hub/models--o--r/snapshots/{revision}/m.gguf"
        link.parent.mkdir(parents=True)
        link.symlink_to(blob)
    (tmp_path / "own").mkdir()
    os.link(blob, tmp_path / "own" / "hard.gguf")
    by_name, _ = found(tmp_path, tmp_path / "own", tmp_path / "home")
    assert list(by_name) == ["hard"]


@needs_links
def test_loops_and_dead_links_do_no_harm(tmp_path):
    kept = model(tmp_path / "own" / "a" / "m.gguf")
    (tmp_path / "own" / "a" / "loop").symlink_to(tmp_path / "own")
    (tmp_path / "own" / "self").symlink_to(tmp_path / "own" / "self")
    (tmp_path / "own" / "dead.gguf").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "own" / "pipe.gguf")
    (tmp_path / "own" / "folder.gguf").mkdir()
    inside = model(tmp_path / "own" / "folder.gguf" / "inside.gguf")
    by_name, _ = found(tmp_path)
    assert {name: each.path for name, each in by_name.items()} == {"m": kept, "inside": inside}


def test_what_is_no_model_is_left_out(tmp_path):
    for name in (
        "mmproj-model-f16.gguf",
        "model-mmproj.gguf",
        "incomplete-m.gguf",
        "m.gguf.part",
        "m.bin",
        "node_modules/x.gguf",
    ):
        model(tmp_path / "own" / name)
    model(tmp_path / "own" / "empty.gguf", b"")
    assert found(tmp_path)[0] == {}


def test_a_missing_added_folder_is_named(tmp_path):
    _, result = found(tmp_path, tmp_path / "drive" / "models")
    assert [place.path for place in result.missing] == [tmp_path / "drive" / "models"]
    assert found(tmp_path, "bad\0folder")[0] == {}


@pytest.mark.parametrize(
    "manifest",
    [
        "",
        "{",
        "[]",
        "3",
        "{}",
        '{"layers": 3}',
        '{"layers": [3]}',
        '{"layers": [{"mediaType": "application/vnd.ollama.image.model"}]}',
        '{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": 3}]}',
        '{"layers": [{"mediaType": "application/vnd.ollama.image.model",'
        ' "digest": "sha256:../../../../own/secret.gguf"}]}',
        '{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:%s"}]}'
        % ("0" * 64),
        "[" * 100_000,
        "x" * 2_000_000,
    ],
)
def test_hostile_manifests(tmp_path, manifest):
    root = tmp_path / "home" / ".ollama" / "models"
    good = ollama(root, "library/good", "1b")
    bad = root / "manifests" / "registry.ollama.ai" / "library" / "bad" / "latest"
    bad.parent.mkdir(parents=True)
    bad.write_text(manifest)
    model(tmp_path / "secret.gguf")
    by_name, _ = found(tmp_path)
    assert {name: each.path for name, each in by_name.items()} == {"good:1b": good}


def test_a_scan_is_bounded_and_can_be_ended(tmp_path, monkeypatch):
    for i in range(50):
        model(tmp_path / "own" / f"{i % 5}" / f"m{i}.gguf")
    place = [Place("own", "", tmp_path / "own")]
    assert len(scan(place, piece_paths).models) == 50
    with monkeypatch.context() as patch:
        patch.setattr("app.library.walk.MAX_ENTRIES", 20)
        cut = scan(place, piece_paths)
        assert cut.was_cut and len(cut.models) < 20
    with monkeypatch.context() as patch:
        patch.setattr("app.library.walk.MAX_SECONDS", -1.0)
        assert scan(place, piece_paths).was_cut
    assert scan(place, piece_paths, cancelled=lambda: True).models == []
    deep = tmp_path / "own" / "/".join("d" * 20)
    model(deep / "deep.gguf")
    assert "deep" not in [each.name for each in scan(place, piece_paths).models]


def test_many_files_are_found_fast(tmp_path):
    for i in range(2000):
        (tmp_path / "own" / str(i % 40)).mkdir(parents=True, exist_ok=True)
        (tmp_path / "own" / str(i % 40) / f"m{i}.gguf").write_bytes(b"G")
    with bounded(1):
        assert len(scan([Place("own", "", tmp_path / "own")], piece_paths).models) == 2000


def test_facts_come_from_the_caller_and_so_do_problems(tmp_path):
    model(tmp_path / "own" / "m.gguf")
    (each,) = scan([Place("own", "", tmp_path / "own")], piece_paths).models
    assert described(each, lambda path: path.name).facts == "m.gguf"

    def refuse(path):
        raise ValueError("This file is cut short: 3.1 of 4.7 GB.")

    refused = described(each, refuse)
    assert refused.facts is None and refused.problem == "This file is cut short: 3.1 of 4.7 GB."
    assert described(refused, lambda path: 1 / 0) is refused


def test_nothing_is_written_anywhere(tmp_path):
    ollama(tmp_path / "home/.ollama/models", "library/m", "1b")
    model(tmp_path / "home/.lmstudio/models/o/r/m.gguf")
    before = sorted((str(p), p.stat().st_mtime_ns) for p in tmp_path.rglob("*"))
    found(tmp_path)
    assert sorted((str(p), p.stat().st_mtime_ns) for p in tmp_path.rglob("*")) == before
    assert models.scan is scan
