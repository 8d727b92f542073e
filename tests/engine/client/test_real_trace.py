"""Traces, recorded seeds and branches on the starter model: what the Tokens tab is built on."""

import math

import pytest

import engine
from tests.make import models

PROMPT = "Once upon a time there was a small"


@pytest.fixture(scope="module")
def client():
    with engine.EngineClient(models.smollm2(), n_slots=2, n_ctx=2048) as opened:
        opened.wait_until_ready()
        yield opened


def ask(client, prompt=PROMPT, **options):
    return client.submit(engine.CompletionRequest(prompt, **options)).result()


def test_the_recorded_seed_gives_the_same_text(client):
    first = ask(client, temperature=1.2, n_predict=16)
    assert ask(client, temperature=1.2, n_predict=16, seed=first.seed).text == first.text
    assert ask(client, temperature=1.2, n_predict=16, seed=first.seed + 1).text != first.text


def test_a_trace_tells_the_same_answer_stage_by_stage(client):
    plain = ask(client, seed=5, n_predict=8)
    traced = ask(client, seed=5, n_predict=8, n_probs=8, trace=True)
    assert traced.tokens == plain.tokens
    for known in traced.probs:
        names = [stage.name for stage in known.stages]
        assert names[0] == "logits" and names[-1] == "dist" and "top-k" in names
        before, after = known.stages[0].probs, known.stages[-1].probs
        assert before[known.token] == pytest.approx(math.exp(known.logprob), rel=1e-3)
        assert after[known.token] > 0
        assert {rival.token for rival in known.top} <= set(before)
        lefts = [stage.n_left for stage in known.stages]
        assert lefts == sorted(lefts, reverse=True) and lefts[-1] <= 40


def test_another_candidate_goes_on_without_reading_the_prompt_again(client):
    prompt = client.tokenize(PROMPT)
    first = ask(client, prompt, seed=5, n_predict=8, n_probs=4, trace=True)
    at = 4
    rival = next(r.token for r in first.probs[at].top if r.token != first.tokens[at])
    branch = ask(client, [*prompt, *first.tokens[:at], rival], seed=5, n_predict=4)
    assert branch.timings.n_read == 1  # the candidate itself
    assert branch.timings.n_cached == len(prompt) + at
