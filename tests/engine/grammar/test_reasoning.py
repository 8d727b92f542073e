"""The reasoning budget as a state machine over token ids."""

import numpy as np
import pytest

from engine.grammar.reasoning import ReasoningBudget, State, TokenSequences, ends_whole

END, THINK = [[101]], [[100]]
CASES = [
    ("natural end", THINK, END, [102], 5, State.IDLE, [100, 50, 51, 101, 52], None),
    ("exhausted", THINK, END, [102, 101], 2, State.IDLE, [100, 50, 51, 52, 53], (3, 4)),
    ("at once", THINK, END, [102, 101], 0, State.COUNTING, [100, 50, 51, 52], (0, 1)),
    ("no sequences", [], [], [102], 2, State.IDLE, [50, 51, 52, 53], None),
    ("counting already", THINK, END, [102, 101], 2, State.COUNTING, [50, 51, 52, 53], (2, 3)),
    ("twice", THINK, END, [102, 101], 2, State.IDLE, [100, 50, 101, 100, 60, 61, 62, 63], (6, 7)),
    (
        "two starts",
        [[100], [110, 111]],
        END,
        [102, 101],
        2,
        State.IDLE,
        [110, 111, 50, 51, 52, 53],
        (4, 5),
    ),
    ("two ends", THINK, [[101], [103, 104]], [102], 5, State.IDLE, [100, 50, 103, 104, 52], None),
]


@pytest.mark.parametrize(
    "starts, ends, forced, budget, state, tokens, wanted",
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_forced_range(starts, ends, forced, budget, state, tokens, wanted):
    sampler = ReasoningBudget(starts, ends, forced, budget, state=state)
    steps = []
    for step, token in enumerate(tokens):
        logits = np.zeros(200, np.float32)
        sampler.apply(logits)
        if np.isfinite(logits).sum() == 1:
            steps.append(step)
            assert logits.argmax() == forced[len(steps) - 1]
        sampler.accept(token)
    assert (steps[0], steps[-1]) == wanted if wanted else steps == []


def counting(forced=(102,), ends=((101,), (103, 104)), budget=9, **more):
    return ReasoningBudget(THINK, ends, forced, budget, state=State.COUNTING, **more)


def test_the_longest_of_overlapping_ends_is_reported():
    sampler = counting(ends=((104,), (103, 104)))
    sampler.accept(103)
    sampler.accept(104)
    assert sampler.state is State.DONE and sampler.ended_with == (103, 104)
    sampler.accept(100)
    assert sampler.state is State.COUNTING and sampler.ended_with is None


@pytest.mark.parametrize("forced, wanted", [((102, 103, 104), (103, 104)), ((102,), None)])
def test_what_a_forced_ending_reports(forced, wanted):
    sampler = counting(forced)
    assert sampler.force() and not sampler.force()
    for token in forced:
        assert sampler.allowed() == token
        sampler.accept(token)
    assert sampler.state is State.DONE and sampler.ended_with == wanted
    assert sampler.allowed() is None


def test_no_character_is_cut():
    pieces = {50: "ä".encode()[:1], 51: "ä".encode()[1:]}
    sampler = counting(budget=1, piece=lambda token: pieces.get(token, b"x"))
    sampler.accept(50)
    assert sampler.state is State.WAITING_UTF8 and sampler.allowed() is None
    sampler.accept(51)
    assert sampler.state is State.FORCING


def test_force_works_only_while_counting():
    sampler = ReasoningBudget(THINK, END, (101,), 5)
    assert not sampler.force() and sampler.state is State.IDLE


def test_a_clone_goes_its_own_way():
    sampler = counting(budget=2)
    sampler.accept(103)
    other = sampler.clone()
    other.accept(104)
    assert other.state is State.DONE and sampler.state is State.COUNTING
    sampler.accept(50)
    assert sampler.state is State.FORCING and other.remaining == 1


@pytest.mark.parametrize(("limit", "n_more"), [(0, 0), (1, 1), (5, 5), (-1, 50)])
def test_a_new_limit_counts_from_here_also_a_longer_or_no_one(limit, n_more):
    sampler = counting(budget=3)
    sampler.accept(50)
    sampler.limit(limit)
    taken = 0
    while sampler.allowed() is None and taken < 50:
        sampler.accept(50)
        taken += 1
    assert taken == n_more


def test_a_new_limit_holds_for_what_is_thought_later():
    for limit, n_free in ((2, 2), (-1, 50), (0, 0)):
        sampler = ReasoningBudget(THINK, END, (101,), 9)
        sampler.limit(limit)
        sampler.accept(100)
        taken = 0
        while sampler.allowed() is None and taken < 50:
            sampler.accept(50)
            taken += 1
        assert taken == n_free


def test_a_new_limit_neither_cuts_a_character_short_nor_stops_the_end():
    sampler = counting(budget=1, piece=lambda token: "ä".encode()[:1] if token == 50 else b"x")
    sampler.accept(50)
    assert sampler.state is State.WAITING_UTF8
    sampler.limit(5)
    assert sampler.state is State.COUNTING and sampler.allowed() is None
    sampler = counting(forced=(102, 101))
    sampler.force()
    sampler.accept(102)
    sampler.limit(50)
    assert sampler.allowed() == 101


def test_no_limit():
    sampler = counting(budget=-1)
    for _ in range(1000):
        sampler.accept(50)
    assert sampler.state is State.COUNTING


def test_sequences_begin_anew_after_a_match():
    finder = TokenSequences([[1, 1], []])
    assert [finder.accept(1) for _ in range(4)] == [None, (1, 1), None, (1, 1)]


@pytest.mark.parametrize(
    "text, whole",
    [(b"", True), (b"a", True), ("ä".encode(), True), ("ä".encode()[:1], False)]
    + [("🙂".encode()[:3], False), ("🙂".encode(), True), (b"\x80\x80\x80\x80\x80", False)],
)
def test_whole_characters(text, whole):
    assert ends_whole(text) == whole
