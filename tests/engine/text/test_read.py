"""Vocabularies that are damaged, hostile or of another kind: a sentence, or a defined reading."""

import numpy as np
import pytest

from engine.errors import ModelFileError, RequestError, UnsupportedModelError
from engine.gguf import GGUF
from engine.text import Vocab
from engine.text.signatures import HASH_BASE
from engine.text.strings import StringTable, string_array
from tests.make import gguf_file
from tests.make import vocab as make

KEY = "tokenizer.ggml."


def _with(**changes):
    metadata = make.byte_pairs(["a b"])
    metadata |= {KEY + name: value for name, value in changes.items()}
    return {name: value for name, value in metadata.items() if value is not None}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model": None}, "names no tokenizer"),
        ({"model": 7}, "names no tokenizer"),
        ({"tokens": None}, "no vocabulary"),
        ({"tokens": string_array([])}, "no vocabulary"),
        ({"tokens": np.arange(5)}, "no vocabulary"),
        ({"tokens": string_array([b"a", b"b", b"a"]), "token_type": None}, "“a” twice"),
        ({"merges": None}, "lacks the merges"),
        ({"merges": np.arange(5)}, "lacks the merges"),
        ({"token_type": np.ones(3, np.int32)}, "257 tokens but 3 as token_type"),
        ({"token_type": string_array([b"x"] * 300)}, "no numbers as token_type"),
        ({"scores": np.ones(3, np.float32)}, "257 tokens but 3 as scores"),
    ],
)
def test_a_vocabulary_that_contradicts_itself_is_refused(changes, says):
    with pytest.raises(ModelFileError, match=says):
        make.vocab(_with(**changes))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model": "plamo2"}, "PLaMo-2"),
        ({"model": "hybriddna"}, "hybrid DNA"),
        ({"model": "none"}, "without a tokenizer"),
        ({"model": "gpt3"}, "“gpt3”.*Did you mean “gpt2”"),
        ({"pre": "smolm"}, "“smolm”.*Did you mean “smollm”"),
        ({"pre": 5}, "“5”"),
        ({"pre": "x" * 10_000}, "“x{40}”"),
    ],
)
def test_a_tokenizer_that_is_not_built_in_is_named(changes, says):
    with pytest.raises(UnsupportedModelError, match=says):
        make.vocab(_with(**changes))


def test_a_missing_rule_is_replaced_and_said():
    vocab = make.vocab(_with(pre=None))
    assert vocab.pre == "default" and "default rule" in vocab.warnings[0]


@pytest.mark.parametrize("value", [257, 1 << 40, -1, "x", 1.5])
def test_ids_outside_the_vocabulary_are_ignored_and_said(value):
    vocab = make.vocab(_with(bos_token_id=value, eos_token_id=4))
    assert (vocab.bos, vocab.eos) == (11, 4)
    assert "bos token" in vocab.warnings[0] and len(vocab.warnings) == 1


def test_defaults_outside_a_tiny_vocabulary_are_no_tokens():
    tokens = {"a": make.NORMAL, "b": make.NORMAL}
    merges = string_array([])
    vocab = make.vocab(make.metadata("gpt2", tokens, pre="gpt-2", merges=merges))
    assert (vocab.bos, vocab.eos) == (-1, -1) and vocab.eog_ids == frozenset()
    assert vocab.tokenize("abcé") == [0, 1]


def test_empty_texts_get_a_name():
    tokens = string_array([b"a", b"", b""])
    vocab = make.vocab(_with(tokens=tokens, token_type=np.array([1, 1, 3], np.int32)))
    assert [vocab.text(token) for token in range(3)] == [b"a", b"[EMPTY_1]", b"[EMPTY_2]"]


def test_types_that_are_none_count_as_undefined():
    types = np.ones(257, np.int32)
    types[[65, 66, 67]] = (99, -5, 1 << 30)
    vocab = make.vocab(_with(token_type=types))
    assert [vocab.piece(token) for token in (64, 65, 66, 67, 68)] == [b"@", b"", b"", b"", b"D"]


def test_tokens_need_not_be_text():
    tokens = string_array([b"\xff\xfe", b"\0", b"a" * 100_000, b"<0x41>", b"<0xZZ>", b"<0x"])
    types = np.array([1, 3, 1, 6, 6, 6], np.int32)
    vocab = make.vocab(_with(tokens=tokens, token_type=types))
    assert vocab.tokenize("\0") == [1]
    assert [vocab.piece(token) for token in (3, 4, 5)] == [b"A", b"", b""]
    assert vocab.tokenize("a" * 200_000) == []


def test_strings_made_to_collide_are_refused():
    # The hash is a polynomial modulo 2 ** 64: Thue-Morse words and their complements collide.
    word = b"a"
    while len(word) < 1 << 11:
        word += word.translate(bytes.maketrans(b"ab", b"ba"))
    other = word.translate(bytes.maketrans(b"ab", b"ba"))
    assert _polynomial(word) == _polynomial(other)
    strings = [b"".join(other if i >> k & 1 else word for k in range(11)) for i in range(1 << 11)]
    with pytest.raises(ModelFileError, match="hang"):
        StringTable(string_array(strings))


def _polynomial(text):
    h = 0
    for value in text:
        h = (h * HASH_BASE + value) % (1 << 64)
    return h


def test_ids_outside_the_vocabulary_are_no_pieces():
    vocab = make.vocab(_with())
    for token in (-1, 257, 1 << 70):
        for ask in (vocab.piece, vocab.text, lambda t: vocab.detokenize([t])):
            with pytest.raises(RequestError, match="There is no token"):
                ask(token)


def test_halves_of_pairs_are_made_whole_or_replaced():
    vocab = make.vocab(_with())
    assert vocab.detokenize(vocab.tokenize("\ud83d\ude00\ud83d")).decode() == "😀\ufffd"


def test_a_vocabulary_outlives_its_file(tmp_path):
    keys = [
        gguf_file.key("general.architecture", gguf_file.STRING, "llama"),
        gguf_file.key(KEY + "model", gguf_file.STRING, "gpt2"),
        gguf_file.key(KEY + "pre", gguf_file.STRING, "gpt-2"),
        gguf_file.key(KEY + "tokens", gguf_file.ARRAY, (gguf_file.STRING, ["a", "b", "ab"])),
        gguf_file.key(KEY + "merges", gguf_file.ARRAY, (gguf_file.STRING, ["a b"])),
    ]
    path = gguf_file.FileOfTest(keys).write(tmp_path / "small.gguf")
    with GGUF.open(path) as file:
        vocab = Vocab.from_gguf(file)
    path.unlink()
    assert vocab.tokenize("abba") == [2, 1, 0]
    assert vocab.detokenize([2, 1, 0]) == b"abba"
