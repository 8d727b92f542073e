"""Every vocabulary of the reference kit, id for id and byte for byte."""

import json
from functools import cache

import pytest

from engine.gguf import GGUF
from engine.text import Vocab
from tests.make import models, shared

VENDORS = (
    *("bert-bge", "deepseek-llm", "falcon", "gemma-4", "gpt-2", "llama-bpe", "llama-spm"),
    *("phi-3", "qwen2", "starcoder"),
)
REAL = {
    "SmolLM2-135M-Instruct.Q4_1": models.smollm2,
    "gemma-3-270m-q4_k_m": models.gemma3,
}
DIVIDER = "\n__ggml_vocab_test__\n"


@cache
def _read(path):
    with GGUF.open(path) as file:
        return Vocab.from_gguf(file)


def _vocab(name):
    if name in REAL:
        return _read(REAL[name]())
    return _read(shared.require(f"conformance/tokenizers/ggml-vocab-{name}.gguf"))


def _vectors(name):
    stem = name if name in REAL else f"ggml-vocab-{name}"
    path = shared.require(f"conformance/tokenizers/{stem}.vectors.json")
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", [*VENDORS, *REAL])
def test_texts_become_the_reference_ids(name):
    vocab = _vocab(name)
    for text, plain, special in _vectors(name)["tokenize"]:
        assert vocab.tokenize(text, parse_special=False, add_special=False) == plain, text
        assert vocab.tokenize(text) == special, text


@pytest.mark.parametrize("name", [*VENDORS, *REAL])
def test_ids_become_the_reference_bytes(name):
    vocab = _vocab(name)
    for ids, plain, special in _vectors(name)["detokenize"]:
        assert vocab.detokenize(ids, special=False).hex() == plain, ids
        assert vocab.detokenize(ids).hex() == special, ids


@pytest.mark.parametrize("name", [*VENDORS, *REAL])
def test_the_tokens_with_a_task_are_the_reference_ones(name):
    vocab, expected = _vocab(name), _vectors(name)
    assert (vocab.bos, vocab.eos, vocab.eot) == tuple(expected[k] for k in ("bos", "eos", "eot"))
    assert sorted(vocab.eog_ids) == expected["eog"]
    assert vocab.switches.add_bos == expected["add_bos"]
    assert vocab.switches.add_eos == expected["add_eos"]


@pytest.mark.parametrize("name", VENDORS)
def test_the_files_of_cases(name):
    vocab = _vocab(name)
    stem = f"conformance/tokenizers/ggml-vocab-{name}.gguf"
    cases = shared.require(stem + ".inp").read_bytes().decode().split(DIVIDER)
    expected = shared.require(stem + ".out").read_text().split("\n")
    assert len(cases) > 40
    for case, line in zip(cases, expected, strict=False):
        ids = vocab.tokenize(case, parse_special=False, add_special=False)
        assert ids == [int(word) for word in line.split()], case


@pytest.mark.parametrize("name", VENDORS)
def test_the_further_vectors(name):
    vocab = _vocab(name)
    vectors = json.loads(shared.require("conformance/tokenizer_vectors.json").read_text())
    for text, ids in vectors.get(name, []):
        assert vocab.tokenize(text, parse_special=False, add_special=False) == ids, text
