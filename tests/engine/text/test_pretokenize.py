"""Every pre-tokenizer against recorded words, whose borders the reference's ids confirmed."""

import json
from itertools import accumulate, pairwise
from pathlib import Path

import pytest

from engine.text.patterns import PATTERNS
from engine.text.pretokenize import PRE_TOKENIZERS

RECORDED = json.loads((Path(__file__).parent / "words.json").read_text(encoding="utf-8"))
BY_TYPE = {row.patterns: row for row in PRE_TOKENIZERS.values()}
LONG = {
    "spaces": " " * 100_000,
    "spaces before a digit": " " * 100_000 + "1",
    "digits": "1" * 100_000,
    "one digit, one letter": "1a" * 50_000,
    "digits of two kinds": "1²" * 50_000,
    "capitals": "A" * 100_000,
    "both cases": "aAbB" * 25_000,
    "marks": "a\u0301" * 50_000,
    "letters and spaces": "a " * 50_000,
    "line ends": "\r\n" * 50_000,
    "spaces and line ends": " \n" * 50_000,
    "quotes": "'" * 100_000,
    "sentinels": "<sentinel:1" * 9_000,
    "images": "IMGIMGA" * 14_000,
    "signs": "^$" * 50_000,
    "scripts": "東ひカ한" * 25_000,
}


@pytest.mark.parametrize("type_name", PATTERNS)
def test_words_are_cut_where_the_reference_cuts(type_name):
    for text, lengths in zip(RECORDED["texts"], RECORDED["lengths"][type_name], strict=True):
        borders = accumulate(map(int, lengths.split()), initial=0)
        expected = [text[a:b] for a, b in pairwise(borders)]
        assert BY_TYPE[type_name].split(text) == expected


def test_every_type_is_named_and_recorded():
    assert set(BY_TYPE) == set(PATTERNS) == set(RECORDED["lengths"])


@pytest.mark.parametrize("type_name", PATTERNS)
def test_no_text_takes_long_and_nothing_is_lost(type_name, cpu_seconds):
    row = BY_TYPE[type_name]
    for name, text in LONG.items():
        words = []
        assert cpu_seconds(lambda t=text, w=words: w.extend(row.split(t))) < 1.0, name
        assert "".join(words) == text
    assert row.split("") == []


@pytest.mark.parametrize(
    ("name", "switches"),
    [
        ("llama-bpe", {"ignore_merges": True, "add_bos": True, "clean_spaces": True}),
        ("smollm", {"ignore_merges": False, "add_bos": False, "clean_spaces": False}),
        ("gemma4", {"escape_spaces": True, "byte_level": False, "forces_bos": True}),
        ("glm4", {"has_bos": False, "ignore_merges": True}),
        ("roberta-bpe", {"add_sep": True}),
        ("tekken", {"ignore_merges": True, "add_bos": True, "clean_spaces": False}),
    ],
)
def test_names_bring_their_switches(name, switches):
    row = PRE_TOKENIZERS[name]
    assert {switch: getattr(row, switch) for switch in switches} == switches


def test_digits_in_threes():
    assert BY_TYPE["superbpe"].split("x 1234567") == ["x ", "1", "234", "567"]
    assert BY_TYPE["afmoe"].split("1234 5") == ["1", "234", " ", "5"]
    assert BY_TYPE["tiny_aya"].split("12345") == ["12", "345"]
