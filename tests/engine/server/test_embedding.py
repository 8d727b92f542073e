"""Embeddings through the queue: order, norms, pooling, errors, beside running answers."""

import threading
import time

import numpy as np
import pytest

import engine
from engine.client.client import EngineClient
from engine.errors import ContextFullError
from engine.server.embedding import normalized
from tests.fakes.gate import Gate
from tests.fakes.model import BOS, answering, loaded


def client_of(n_slots=1, **options):
    model = loaded(answering(b"x" * 20), **options)
    return EngineClient.over(lambda progress: model, n_slots), model.context


def test_each_text_has_its_vector_in_order():
    client, context = client_of()
    with client:
        vectors = client.embed(["ab", [7, 8, 9]], normalize=-1)
    assert np.allclose(vectors[0], np.mean([[BOS, 0, 1], [97, 1, 1], [98, 2, 1]], axis=0))
    assert np.allclose(vectors[1], [8, 1, 1])


def test_without_pooling_every_token_has_a_row():
    client, _ = client_of()
    with client:
        rows = client.embed(["ab"], pooling="none")[0]
    assert rows.shape == (3, 3)
    assert rows[0].tolist() == [BOS, 0, 1]


@pytest.mark.parametrize(
    ("norm", "expected"),
    [
        (-1, [3, -4, 0]),
        (0, [24570, -32760, 0]),
        (1, [3 / 7, -4 / 7, 0]),
        (2, [0.6, -0.8, 0]),
        (3, [3 / 91 ** (1 / 3), -4 / 91 ** (1 / 3), 0]),
    ],
)
def test_norms(norm, expected):
    assert np.allclose(normalized(np.array([3, -4, 0], np.float32), norm), expected)
    assert not normalized(np.zeros(3, np.float32), norm).any()


def test_what_cannot_be_embedded_is_refused():
    client, _ = client_of(n_ctx=16)
    with client:
        for texts in ([""], ["  "], [[]]):
            with pytest.raises(engine.RequestError, match="empty"):
                client.embed(texts)
        with pytest.raises(ContextFullError):
            client.embed(["a", "b" * 40])
        with pytest.raises(engine.RequestError, match="norm"):
            client.embed(["a"], normalize=-2)
        assert client.embed([]) == []
        assert len(client.embed(["a"])) == 1


def test_answers_go_on_between_the_texts():
    client, context = client_of()
    gate = Gate(context)
    order = []
    embed = context.embed

    def noted(tokens, pooling=None):
        order.append("embed")
        return embed(tokens, pooling)

    context.embed = noted
    with client:
        running = client.submit(
            engine.CompletionRequest(
                "a>",
                temperature=0,
                on_event=lambda e: order.append("token") if isinstance(e, engine.TextDelta) else 0,
            )
        )
        gate.step(2)
        texts = ["one", "two", "three", "four"]
        asking = threading.Thread(target=lambda: client.embed(texts))
        asking.start()
        while not client._loop.queue.has_posted:
            time.sleep(0.001)
        gate.open()
        asking.join(10)
        assert running.wait(10)
    first, last = order.index("embed"), len(order) - 1 - order[::-1].index("embed")
    assert order[first : last + 1].count("token") >= 2


def test_a_full_context_makes_room_for_it():
    client, context = client_of()
    n_calls = []
    embed = context.embed

    def full(tokens, pooling=None):
        n_calls.append(1)
        if len(n_calls) < 2:
            raise ContextFullError("full")
        return embed(tokens, pooling)

    context.embed = full
    with client:
        client.submit(engine.CompletionRequest("some text>", temperature=0)).result()
        assert len(client.embed(["one"])) == 1
        assert client.slots()[0].n_tokens == 0
        n_calls.clear()
        with pytest.raises(ContextFullError):
            client.embed(["one"])


def test_a_model_that_fails_fails_this_task_only():
    client, context = client_of()
    context.embed = lambda tokens, pooling: 1 / 0
    with client:
        with pytest.raises(engine.InternalError, match="division"):
            client.embed(["one"])
        assert client.submit(engine.CompletionRequest("x>", temperature=0)).result().text
