"""logits, perplexity and bench on a tiny model of random weights, against plain NumPy."""

import json

import numpy as np
import pytest

from engine.cli import commands
from engine.cli.synthetic import write_model
from engine.runtime import Model


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tiny model ü.gguf"
    write_model("llama:1M:F32", path)
    return str(path)


def test_logits_are_those_of_one_sequence(tiny, tmp_path):
    out = tmp_path / "x.npz"
    words = ["logits", "--model", tiny, "--tokens", "1,300,301,302,303", "--out", str(out)]
    assert commands.main(words) == 0
    found = dict(np.load(out))
    assert found["logits"].shape == (5, 512)
    assert found["logits"].dtype == np.float32
    assert found["tokens"].tolist() == [1, 300, 301, 302, 303]
    with Model.load(tiny) as model, model.context(n_ctx=256) as context:
        one_by_one = np.concatenate([context.decode([t]) for t in found["tokens"].tolist()])
    assert np.abs(found["logits"] - one_by_one).max() < 1e-2
    assert commands.main([*words, "--positions", "4,1"]) == 0
    some = dict(np.load(out))
    assert some["positions"].tolist() == [4, 1]
    np.testing.assert_allclose(some["logits"], found["logits"][[4, 1]], atol=1e-5)


def test_perplexity_scores_every_token_once(tiny, tmp_path, capsys):
    text = tmp_path / "text"
    text.write_text("naïve words, again and again: " * 4, encoding="utf-8")
    words = ["perplexity", "--model", tiny, "--file", str(text), "--json"]
    assert commands.main([*words, "--n-ctx", "4096"]) == 0
    whole = json.loads(capsys.readouterr().out)
    with Model.load(tiny) as model, model.context(n_ctx=4096) as context:
        tokens = model.vocab.tokenize(text.read_text(encoding="utf-8"), parse_special=False)
        logits = context.decode(tokens, want="all").astype(np.float64)
    shares = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    nll = -np.mean([shares[i, token] for i, token in enumerate(tokens[1:])])
    assert whole["n_tokens"] == len(tokens) - 1
    assert whole["nll"] == pytest.approx(nll, abs=1e-3)
    assert whole["perplexity"] == pytest.approx(np.exp(nll), rel=2e-3)
    for n_ctx in (2, 3, 16, 64):
        assert commands.main([*words, "--n-ctx", str(n_ctx)]) == 0
        assert json.loads(capsys.readouterr().out)["n_tokens"] == len(tokens) - 1


def test_perplexity_refuses_texts_it_cannot_score(tiny, tmp_path, capsys):
    empty, latin = tmp_path / "empty", tmp_path / "latin"
    empty.write_text("")
    latin.write_bytes(b"caf\xe9")
    for path, says in ((empty, "too short"), (latin, "UTF-8"), (tmp_path / "none", "none")):
        assert commands.main(["perplexity", "--model", tiny, "--file", str(path)]) == 1
        assert says in capsys.readouterr().err


def test_bench_measures_reading_and_generating(capsys):
    words = ["bench", "--synthetic", "llama:1M:F32", "-p", "16", "-n", "4", "-r", "2", "-d", "8"]
    assert commands.main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["model"] == "llama:1M:F32"
    for name, n_tokens in (("prompt", 16), ("generate", 4)):
        test = found["tests"][name]
        assert test["n_tokens"] == n_tokens
        assert len(test["all"]) == 2
        assert min(test["all"]) <= test["tps"] <= max(test["all"])
    assert commands.main(words) == 0
    assert "tokens/s" in capsys.readouterr().out


def test_prepare_leaves_nothing_to_compile(tiny, monkeypatch):
    stages = []
    assert commands.main(["prepare", "--model", tiny]) == 0
    with Model.load(tiny, progress=lambda stage, done: stages.append(stage)):
        assert "compile kernels" not in stages
