"""Exit codes and refusals of the command line: 2 for bad usage, 1 with one line for a refusal."""

import io
import json
import subprocess
import sys

import pytest

from engine.cli import commands
from engine.cli.synthetic import write_model


def refusal(capsys, *words):
    """Run a command that must refuse; return its one line."""
    assert commands.main(words) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize("words", [[], ["nonsense"], ["inspekt", "x"]])
def test_an_unknown_command_is_bad_usage(words, capsys):
    assert commands.main(words) == 2
    assert "usage" in capsys.readouterr().err


def test_the_nearest_command_is_named(capsys):
    commands.main(["inspekt"])
    assert "“inspect”" in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(commands.COMMANDS))
def test_every_command_tells_its_options(name, capsys):
    with pytest.raises(SystemExit) as ended:
        commands.main([name, "--help"])
    assert ended.value.code == 0
    assert "usage" in capsys.readouterr().out


def test_missing_and_unknown_options_are_bad_usage():
    for words in (["run"], ["inspect"], ["bench", "--nonsense"], ["logits", "--model", "x"]):
        with pytest.raises(SystemExit) as ended:
            commands.main(words)
        assert ended.value.code == 2


@pytest.mark.parametrize("command", ["run --prompt x", "chat", "tokenize", "perplexity --file x"])
def test_a_missing_model_is_one_line(command, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("[]"))
    (tmp_path / "x").write_text("some text")
    monkeypatch.chdir(tmp_path)
    name, *rest = command.split()
    assert "missing.gguf" in refusal(capsys, name, "--model", "missing.gguf", *rest)


def test_files_that_are_no_models_are_refused(capsys, tmp_path):
    path = tmp_path / "Modèle für 日本.gguf"
    path.write_bytes(b"not a model")
    refusal(capsys, "inspect", str(path))
    write_model("llama:1M:Q8_0", path)
    path.write_bytes(path.read_bytes()[:-5000])
    assert "cut short" in refusal(capsys, "inspect", str(path))
    assert "cut short" in refusal(capsys, "run", "--model", str(path), "--prompt", "x")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["bench"], "--synthetic"),
        (["bench", "--synthetic", "llama"], "ARCH:SIZE:QUANT"),
        (["bench", "--synthetic", "lama:1M:F32"], "“llama”"),
        (["bench", "--synthetic", "llama:1M:Q4"], "“Q4_"),
        (["bench", "--synthetic", "llama:9T:Q4_0"], "1.1B"),
        (["bench", "--synthetic", "llama:15M:Q4_K"], "cannot be stored"),
        (["logits", "--model", "x", "--tokens", "1,a", "--out", "x"], "whole numbers"),
        (["logits", "--model", "x", "--tokens", "", "--out", "x"], "at least one"),
        (["logits", "--model", "x", "--tokens", "1", "--positions", "3", "--out", "x"], "outside"),
    ],
)
def test_refusals_name_the_remedy(words, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert says in refusal(capsys, *words)


@pytest.mark.parametrize("given", ["", "{}", '"text"', "[1]", "[", '["a", null]'])
def test_tokenize_refuses_what_is_no_list_of_texts(given, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(given))
    assert "JSON list" in refusal(capsys, "tokenize", "--model", "x")


def test_inspect_tells_what_a_file_holds_and_needs(capsys, tmp_path):
    path = tmp_path / "m.gguf"
    write_model("llama:1M:Q4_K_M", path)
    assert commands.main(["inspect", str(path), "--json", "--n-ctx", "64"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["arch"], found["runs"]) == ("llama", True)
    assert found["metadata"]["llama.embedding_length"] == 256
    assert found["metadata"]["tokenizer.ggml.tokens"]["n"] == 512
    assert len(found["tensors"]) == 21
    assert found["n_params"] == sum(
        tensor["shape"][0] * (tensor["shape"] + [1])[1] for tensor in found["tensors"]
    )
    # Two layers, two KV heads of 64, K and V, two bytes each.
    assert found["memory"]["kv_bytes_per_token"] == 2 * 2 * 64 * 2 * 2
    assert found["memory"]["kv_bytes"] == 64 * 1024
    assert commands.main(["inspect", str(path), "--tensors"]) == 0
    out = capsys.readouterr().out
    assert "blk.1.ffn_down.weight" in out
    assert "Q6_K" in out


def test_inspect_shows_hostile_text_harmlessly(capsys, tmp_path):
    import gguf

    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(path, "strange-arch")
    writer.add_name("evil \x1b[2J\r name")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert commands.main(["inspect", str(path)]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\r" not in out
    assert "strange-arch" in out
    assert "cannot run" in out


def test_importing_the_command_line_is_quick():
    code = "import sys, engine.cli.commands; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
