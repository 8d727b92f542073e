"""The tokenizers of the two test models: known ids, round trips, speed, size of the input."""

import json
import threading
from functools import cache
from pathlib import Path

import pytest

from engine.gguf import GGUF
from engine.text import Vocab
from tests.make import models

LONG = {
    "one letter": "a",
    "spaces": " ",
    "one emoji": "😀",
    "a family": "👩🏽\u200d🚀",
    "newlines": "\n",
    "digits": "1",
    "contractions": "'s",
    "signs": "a.",
    "half a special token": "<|im_star",
    "white space": "\u3000 \t",
    "characters of no one": "\U000e0001",
    "halves of pairs": "\ud800",
    "zeros": "\0",
    "words without end": "x" * 100_000 + " ",
}


@cache
def _vocab(name):
    with GGUF.open(getattr(models, name)()) as file:
        return Vocab.from_gguf(file)


RECORDED = json.loads((Path(__file__).parent / "real_ids.json").read_text(encoding="utf-8"))


@pytest.fixture(params=["smollm2", "gemma3"])
def vocab(request):
    return _vocab(request.param)


def test_smollm2_knows_its_tokens():
    vocab = _vocab("smollm2")
    assert (vocab.bos, vocab.eos, vocab.eot, vocab.eog_ids) == (1, 2, 0, {0, 2, 4})
    assert vocab.n_tokens == 49152
    prompt = "<|im_start|>user\nHi<|im_end|>\n"
    ids = vocab.tokenize(prompt)
    assert ids[0] == 1 and ids.count(2) == 1
    assert vocab.detokenize(ids).decode() == prompt
    assert 1 not in vocab.tokenize(prompt, parse_special=False)


def test_gemma3_knows_its_tokens():
    vocab = _vocab("gemma3")
    assert (vocab.bos, vocab.eos, vocab.eot, vocab.eog_ids) == (2, 1, 106, {1, 106, 212})
    assert vocab.n_tokens == 262144
    assert vocab.tokenize("Hello world") == [2, 9259, 1902]
    assert vocab.tokenize("<start_of_turn>user")[1] == 105
    assert vocab.piece(1902) == b" world" and vocab.piece(2, special=False) == b""


@pytest.mark.parametrize("name", RECORDED)
def test_texts_become_the_recorded_ids(name):
    vocab = _vocab(name)
    for text, plain, special in RECORDED[name]:
        assert vocab.tokenize(text, parse_special=False, add_special=False) == plain, text
        assert vocab.tokenize(text) == special, text


@pytest.mark.parametrize(
    "text", [" Zwölf Boxkämpfer  jagen\n\n\tViktor 42×", "日本語 👩🏽‍🚀 дом", "\0\x7f"]
)
def test_texts_come_back(vocab, text):
    ids = vocab.tokenize(text, parse_special=False, add_special=False)
    assert vocab.detokenize(ids).decode() == text
    assert b"".join(vocab.piece(token) for token in ids).decode() == text


def test_every_character_comes_back(vocab):
    for first in range(0x20, 0x30000, 0x400):
        codes = range(first, first + 0x400, 7)
        text = "".join(chr(c) for c in codes if not 0xD800 <= c < 0xE000)
        ids = vocab.tokenize(text, parse_special=False, add_special=False)
        assert vocab.detokenize(ids).decode() == text


@pytest.mark.parametrize("unit", LONG.values(), ids=LONG)
def test_time_is_linear_in_the_text(vocab, unit, cpu_seconds):
    n_units = 300_000 // len(unit)
    vocab.tokenize(unit * 3)
    assert cpu_seconds(lambda: vocab.tokenize(unit * n_units)) < 2.0


def test_prose_is_read_at_a_megabyte_a_second(vocab, cpu_seconds):
    prose = "".join(
        f"Chapter {i}. It was a bright cold day in April, and the {i % 97} clocks were striking"
        f" thirteen; nobody's watch-chain ({i * 31}) said otherwise. “Né à Köln”, wrote she.\n"
        for i in range(3000)
    )
    n_bytes = len(prose.encode())
    vocab.tokenize(prose[:10_000])
    best = min(cpu_seconds(lambda: vocab.tokenize(prose)) for _ in range(3))
    assert n_bytes / best > 1e6


def test_a_vocabulary_is_ready_in_no_time(cpu_seconds):
    for name, seconds in (("smollm2", 0.15), ("gemma3", 0.3)):
        _vocab(name)
        with GGUF.open(getattr(models, name)()) as file:
            assert min(cpu_seconds(lambda: Vocab.from_gguf(file)) for _ in range(3)) < seconds


def test_threads_share_a_vocabulary(vocab):
    texts = [f"The {i}th thread says: naïve {chr(0x4E00 + i)} " * 50 for i in range(8)]
    expected = [vocab.tokenize(text) for text in texts]
    wrong = []

    def check(start):
        for i in range(60):
            k = (start + i) % len(texts)
            vocab.tokenize(f"something else {start} {i}")
            if vocab.tokenize(texts[k]) != expected[k]:
                wrong.append(k)

    threads = [threading.Thread(target=check, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
