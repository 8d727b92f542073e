"""The first grammar of a model, on the real engine: the answer beside it goes on, step by step."""

import itertools
import time

import pytest

import engine
from engine.grammar import tokens
from tests.make import models


@pytest.fixture
def building(monkeypatch):
    """Note when the table of a vocabulary is begun and done."""
    times, plain = [], tokens.TokenTable.__init__

    def make(self, vocab):
        times.append(time.perf_counter())
        plain(self, vocab)
        times.append(time.perf_counter())

    monkeypatch.setattr(tokens.TokenTable, "__init__", make)
    return times


@pytest.mark.parametrize(
    "constraint",
    [
        {"json_schema": {"type": "object"}},
        {"grammar": 'root ::= "yes" | "no"'},
        {"regex": "[a-z]+"},
    ],
)
def test_an_answer_takes_steps_while_the_first_grammar_is_prepared(building, constraint):
    """None came for as long as the library held the interpreter, 0.2 s for this vocabulary."""
    with engine.EngineClient(models.smollm2(), n_slots=2, n_ctx=1024) as client:
        client.wait_until_ready()
        options = dict(n_predict=400, seed=1, ignore_eos=True)
        running = client.submit(engine.CompletionRequest("Once upon a time", **options))
        steps = []
        for event in itertools.islice(running, 12):
            assert isinstance(event, engine.TextDelta | engine.PromptProgress), event
        request = engine.CompletionRequest("An answer: ", n_predict=4, seed=1, **constraint)
        held = client.submit(request)
        for _ in running:
            steps.append(time.perf_counter())
            if len(building) == 2 and len(steps) > 5:
                break
        running.cancel()
        assert held.result().text
    during = [step for step in steps if building[0] < step < building[1]]
    seconds = building[1] - building[0]
    assert len(during) >= 3, f"{len(during)} steps in {seconds:.3f} s"
    # No wait is as long as what is prepared: held, it was nine tenths of it and more.
    inside = [building[0], *during, building[1]]
    assert max(b - a for a, b in itertools.pairwise(inside)) < 0.7 * seconds
