"""Filling gaps: the prompt token by token, shortened as it must be, and the answer to it."""

from types import SimpleNamespace

import pytest

import engine
from engine.client.client import EngineClient
from engine.server.infill import Infill, infill_prompt
from tests.fakes.model import BOS, answering, loaded

PRE, SUF, MID, REP, SEP = 300, 301, 302, 303, 304


def vocab(rep=REP, sep=SEP, add_bos=True, pre=PRE):
    return SimpleNamespace(
        bos=BOS,
        ids=SimpleNamespace(fim_pre=pre, fim_suf=SUF, fim_mid=MID, fim_rep=rep, fim_sep=sep),
        switches=SimpleNamespace(add_bos=add_bos),
    )


def tokenize(text):
    return list(text.encode())


def prompt_of(gap, n_ctx=1000, n_batch=400, n_predict=-1, **kind):
    return infill_prompt(gap, vocab(**kind), tokenize, n_ctx, n_batch, n_predict)


def test_prefix_suffix_and_middle_in_order():
    repository = [REP, *b"myproject\n", SEP, *b"filename\n"]
    assert prompt_of(Infill("ab", "cd")) == [*repository, BOS, PRE, *b"ab", SUF, *b"cd", MID]
    gap = Infill("ab", "cd", prompt="x", suffix_first=True)
    assert prompt_of(gap, rep=-1, sep=-1, add_bos=False) == [SUF, *b"cd", PRE, *b"abx", MID]


def test_other_files_come_first_and_are_told_apart():
    gap = Infill("a", "b", extra=[("one.py", "11"), ("two.py", "22")])
    expected = [SEP, *b"one.py\n11", SEP, *b"two.py\n22", SEP, *b"filename\n"]
    assert prompt_of(gap, rep=-1)[: len(expected)] == expected
    expected = [*b"\n\n--- snippet ---\n\n11", *b"\n\n--- snippet ---\n\n22", BOS]
    assert prompt_of(gap, rep=-1, sep=-1)[: len(expected)] == expected


def test_what_is_too_long_is_cut_where_it_is_far_from_the_gap():
    gap = Infill("p" * 500 + "q", "r" + "s" * 500, extra=[("f", "x" * 900)], prompt="zz")
    tokens = prompt_of(gap, n_ctx=1000, n_batch=400, n_predict=100)
    start = tokens.index(PRE)
    middle = tokens.index(SUF)
    assert tokens[start + 1 : middle] == [*b"p" * 299, *b"q", *b"zz"]
    assert tokens[middle + 1 : -1] == [*b"r", *b"s" * 95]
    assert len(tokens[:start]) == 1000 - 400 - 200 + 1  # and the beginning token
    assert tokens[:9] != [REP, *b"myprojec"]
    tokens = prompt_of(gap, n_ctx=300, n_batch=400)
    assert tokens[0] == BOS


def test_a_model_without_such_tokens_refuses():
    with pytest.raises(engine.RequestError, match="fill gaps"):
        prompt_of(Infill("a", "b"), pre=-1)
    model = loaded(answering(b"x"))
    with EngineClient.over(lambda progress: model, 1) as client:
        failed = list(client.infill("a", "b"))[-1]
        assert (failed.kind, "fill gaps" in failed.message) == ("request", True)


def test_an_answer_fills_the_gap():
    model = loaded(answering(lambda prompt: b"<" + prompt[-3:-1] + b">"))
    model.vocab.ids = SimpleNamespace(
        fim_pre=ord("("), fim_suf=ord(")"), fim_mid=ord(">"), fim_rep=-1, fim_sep=-1
    )
    with EngineClient.over(lambda progress: model, 1) as client:
        last = client.infill("def f(", "x):", temperature=0, n_predict=20).result()
        assert last.text == "<x:>" or last.text.startswith("<")
        assert last.timings.n_prompt == 1 + 1 + 6 + 1 + 3 + 1
