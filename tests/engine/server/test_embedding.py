"""Embeddings through the queue: order, norms, pooling, errors, beside running answers."""

import threading
import time

import numpy as np
import pytest

import engine
from engine.client.client import EngineClient
from engine.errors import ContextFullError
from engine.memory import Segment
from engine.server.embedding import normalized
from tests.fakes.gate import Gate
from tests.fakes.model import BOS, EOS, answering, chaotic, loaded
from tests.fakes.paged import PagedContext


def client_of(n_slots=1, **options):
    model = loaded(answering(b"x" * 20), **options)
    return EngineClient.over(lambda progress: model, n_slots), model.context


def restless(tokens):
    row = chaotic()(tokens)
    row[EOS] = -100
    return row


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
    context.embed_piece = lambda tokens, start: order.append("embed")
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


def test_one_long_text_is_read_in_pieces_between_the_tokens_of_an_answer():
    client, context = client_of(n_batch=512)
    gate, order = Gate(context), []
    context.embed_piece = lambda tokens, start: order.append(len(tokens))
    with client:
        running = client.submit(
            engine.CompletionRequest(
                "a>",
                temperature=0,
                on_event=lambda e: order.append("token") if isinstance(e, engine.TextDelta) else 0,
            )
        )
        gate.step(2)
        asking = threading.Thread(target=lambda: client.embed([[7] * 1000]))
        asking.start()
        while not client._loop.queue.has_posted:
            time.sleep(0.001)
        gate.open()
        asking.join(10)
        assert running.wait(10)
        alone = len(order)
        client.embed([[7] * 1000])
    pieces = [each for each in order[:alone] if each != "token"]
    assert pieces == [128] * 7 + [104]
    first = order.index(128)
    between = order[first : first + 15]
    assert between == [128, "token"] * 7 + [104]
    assert order[alone:] == [512, 488]


def test_a_text_gives_way_to_an_answer_and_is_read_when_it_has_ended():
    """Together they need more pages than there are; the answer must not notice."""
    context = PagedContext(restless, 128, 2)
    model = loaded(None, context=context, forks=(1,), n_ctx=256, n_batch=32)
    memory = context.memory
    held = leave_free(memory, 5)
    gate, vectors, order = Gate(context), [], []
    read = context.embed_piece

    def noted(tokens, start):
        read(tokens, start)
        order.append(start)

    context.embed_piece = noted
    with EngineClient.over(lambda progress: model, 1) as client:
        running = client.submit(
            engine.CompletionRequest([BOS, *range(30)], temperature=0, n_predict=80)
        )
        gate.step(2)
        text = [[7] * 120]
        asking = threading.Thread(target=lambda: vectors.append(client.embed(text)))
        asking.start()
        while not client._loop.queue.has_posted:
            time.sleep(0.001)
        gate.open()
        assert len(running.result().tokens) == 80
        asking.join(10)
        assert len(vectors) == 1
        assert order.count(0) == 2, "it was begun once more"
        assert order[-4:] == [0, 32, 64, 96]
        with pytest.raises(ContextFullError):  # not even in an idle engine
            client.embed([[7] * 32 * 6])
    for snapshot in held:
        snapshot.release()


def leave_free(memory, n_pages):
    """Hold pages of something else until so few are free; return what holds them."""
    held = []
    while (n_taken := memory.pools[0].n_free - n_pages) > 0:
        positions = np.arange(min(128, 32 * n_taken), dtype=np.int32)
        memory.place([Segment(1, 0, len(positions))], positions, positions)
        held.append(memory.snapshot(1))
        memory.seq_rm(1)
    return held


def test_a_full_context_makes_room_for_it():
    client, context = client_of()
    n_calls = []

    def full(tokens, start):
        n_calls.append(1)
        if len(n_calls) < 2:
            raise ContextFullError("full")

    context.embed_piece = full
    with client:
        client.submit(engine.CompletionRequest("some text>", temperature=0)).result()
        assert len(client.embed(["one"])) == 1
        assert client.slots()[0].n_tokens == 0
        n_calls.clear()
        with pytest.raises(ContextFullError):
            client.embed(["one"])


def test_a_model_that_fails_fails_this_task_only():
    client, context = client_of()
    context.embed_piece = lambda tokens, start: 1 / 0
    with client:
        with pytest.raises(engine.InternalError, match="division"):
            client.embed(["one"])
        assert client.submit(engine.CompletionRequest("x>", temperature=0)).result().text
