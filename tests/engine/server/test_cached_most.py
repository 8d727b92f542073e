"""A request may start behind fewer tokens than are remembered: it reads as it once did."""

import pytest

import engine
from tests.engine.server.test_prompt_cache import ask, client_of
from tests.fakes.model import answering

PROMPT = "a question that is long enough to be remembered?>"


@pytest.mark.parametrize("n_most, n_cached", [(0, 0), (7, 7), (1000, 50), (-1, 50)])
def test_no_more_than_so_many_tokens_are_taken_over(n_most, n_cached):
    client, context = client_of(answering(b"a long enough answer"), n_slots=2)
    with client:
        first = ask(client, PROMPT)
        assert first.timings.n_prompt == 50
        again = ask(client, PROMPT, n_cached_most=n_most)
        assert again.timings.n_cached == n_cached and again.text == first.text
        assert again.timings.n_cached + again.timings.n_read == 50
        context.memory.check_integrity()


def test_what_is_no_count_is_refused():
    with pytest.raises(engine.RequestError, match="n_cached_most"):
        engine.CompletionRequest("x", n_cached_most=-2)
