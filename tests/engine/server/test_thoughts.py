"""A listener hears before the first word whether the prompt has opened a thought."""

import pytest

import engine
from tests.engine.server.test_many import client_of
from tests.fakes.model import answering


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
