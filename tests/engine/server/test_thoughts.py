"""Thoughts: told when the prompt opens one, ended by a budget or by a hurried person, and again."""

import pytest

import engine
from engine.client.constraints import Reasoning
from engine.server.constrained import ConstrainedSampler
from tests.engine.server.test_constrained import Vocab
from tests.engine.server.test_many import client_of
from tests.fakes.model import SeededSampler, answering, chaotic


@pytest.mark.parametrize("is_reasoning", [False, True])
def test_progress_tells_of_a_thought_that_the_prompt_opened(is_reasoning):
    client, _, gate = client_of(answering(b"ab"), n_slots=1)
    gate.open()
    with client:
        client.wait_until_ready()
        make = client._loop.loaded.make_sampler

        def made(*given):
            sampler = make(*given)
            sampler.is_reasoning = is_reasoning
            return sampler

        client._loop.loaded.make_sampler = made
        events = list(client.submit(engine.CompletionRequest("x>")))
    told = [e.is_reasoning for e in events if isinstance(e, engine.PromptProgress)]
    assert told and set(told) == {is_reasoning}


THINK, ANSWER = ord("{"), ord("}")  # as if they were tags


def thinking(request, prompt):
    """Return a sampler that knows tags of thoughts, over one that draws by a seed."""
    reasoning = Reasoning("", Vocab())
    reasoning.start, reasoning.end = [THINK], [ANSWER]
    chain = SeededSampler(request, prompt)
    chain.stages = ()
    return ConstrainedSampler(chain, None, reasoning.budget(request.reasoning_budget, prompt))


def answer(changes=(), hurry_at=0, **options):
    client, _, gate = client_of(chaotic(3), n_slots=1)
    with client:
        client.wait_until_ready()
        client._loop.loaded.make_sampler = thinking
        request = engine.CompletionRequest(
            [256, THINK], seed=5, temperature=9.0, n_predict=20, changes=changes, **options
        )
        handle = client.submit(request)
        if hurry_at:
            gate.step(hurry_at)
            handle.end_reasoning()
        gate.open()
        return handle.result()


def test_a_thought_that_was_ended_early_ends_at_the_same_token_again():
    plain = answer()
    hurried = answer(hurry_at=4)
    ((at, values),) = hurried.changes
    assert values == {"reasoning_budget": 0} and hurried.tokens[at] == ANSWER
    assert ANSWER not in plain.tokens[: at + 1]
    again = answer(changes=hurried.changes)
    assert again.tokens == hurried.tokens and again.changes == hurried.changes


def test_a_budget_ends_a_thought_by_itself():
    tokens = answer(reasoning_budget=6).tokens
    assert tokens.index(ANSWER) == 7  # six tokens end inside of a character, which is ended first
    assert answer(reasoning_budget=0).tokens[0] == ANSWER
