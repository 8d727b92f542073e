"""Context shift and chunk reuse: which tokens stay, where they move, and what is read again."""

import numpy as np
import pytest

import engine
from engine.client.client import EngineClient
from engine.errors import ContextFullError
from engine.memory import Segment
from engine.server.shift import shift_context
from engine.server.slot import Slot
from tests.fakes.model import BOS, answering, chaotic, loaded
from tests.fakes.paged import PagedContext


def client_of(logits_of, n_slots=1, **options):
    model = loaded(logits_of, **options)
    model.shifts_context = True
    return EngineClient.over(lambda progress: model, n_slots), model.context


def ask(client, prompt, **options):
    return client.submit(engine.CompletionRequest(prompt, temperature=0, **options)).result()


@pytest.mark.parametrize(
    ("options", "n_kept", "n_dropped"),
    [
        ({}, 1, 7),  # the beginning token, then half of 15 - 1
        ({"n_keep": 3}, 4, 5),
        ({"n_keep": -1}, 6, 4),
        ({"n_discard": 2}, 1, 2),
        ({"n_keep": 100}, 12, 1),
        ({"n_keep": 100, "n_discard": 50}, 12, 2),
    ],
)
def test_a_full_context_drops_its_middle_and_goes_on(options, n_kept, n_dropped):
    client, context = client_of(chaotic(), n_ctx=16)
    prompt = [BOS, 1, 2, 3, 4]
    with client:
        last = ask(client, prompt, n_predict=14, **options)
    assert last.truncated
    assert len(last.tokens) == 14
    shifts = [call for call in context.memory.calls if call[0] == "seq_add"]
    end = n_kept + n_dropped
    assert shifts[0] == ("seq_add", 0, end, 15, -n_dropped)
    assert ("seq_rm", 0, n_kept, end) in context.memory.calls


def test_after_a_shift_the_model_sees_what_is_left():
    client, _ = client_of(chaotic(), n_ctx=12)
    prompt = [BOS, *range(8)]
    with client:
        last = ask(client, prompt, n_predict=7, n_keep=2)
    # Full with 11 tokens, two of them said: 3 stay, 4 of the other 8 go, 4 move down.
    held = [*prompt, *last.tokens[:2]]
    held = held[:3] + held[7:]
    for i in range(3, 7):
        seen = held + list(last.tokens[2:i])
        assert last.tokens[i] == int(chaotic()(seen).argmax())


def test_a_shift_that_finds_no_page_ends_the_answer(monkeypatch):
    client, context = client_of(chaotic(), n_ctx=12)

    def full(*_):
        raise ContextFullError("no page")

    monkeypatch.setattr(context.memory, "seq_add", full)
    with client:
        last = ask(client, [BOS, 1, 2], n_predict=30)
        assert (last.stop_type, last.truncated) == ("limit", True)
        assert client.slots()[0].n_tokens == len(context.memory.tokens(0)) == 1


def test_answers_of_one_prompt_shift_each_for_itself():
    """They share the pages of the prompt; what one moves, the others must not see move."""
    context = PagedContext(chaotic(), 256, 4)
    model = loaded(None, context=context, forks=(3,), n_ctx=64, n_batch=32)
    model.shifts_context = True
    with EngineClient.over(lambda progress: model, 3) as client:
        request = engine.CompletionRequest(
            [BOS, *range(40)], temperature=0, n_predict=60, n_keep=4, n=3, ignore_eos=True
        )
        handle = client.submit(request)
        lasts = [event for event in handle if isinstance(event, engine.Finished)]
        assert [(len(last.tokens), last.truncated) for last in lasts] == [(60, True)] * 3
        assert lasts[0].tokens == lasts[1].tokens == lasts[2].tokens
        alone = client.submit(request.replace(n=1)).result()
        assert alone.tokens == lasts[0].tokens


def test_idle_memory_goes_before_the_middle_of_an_answer_is_lost():
    """The end of slot 0 is shared with a copy that is held; every page is taken, each by an idle
    conversation; moving that end down copies it, so they must go first."""
    context = PagedContext(chaotic(), 128, 5, snapshot_bytes=1 << 20)
    memory, slot = context.memory, Slot(0, 128)
    slot.request, slot.prompt = engine.CompletionRequest("", n_keep=5), [BOS]
    slot.tokens = list(range(127))
    place(memory, 0, slot.tokens)
    held = [memory.snapshot(0)]
    pool = memory.pools[0]
    while pool.n_free:
        place(memory, 1, range(min(128, 32 * pool.n_free)))
        held.append(memory.snapshot(1))
        memory.seq_rm(1, 0, -1)
    freed = []

    def make_room():
        if len(held) > len(freed) + 1:
            freed.append(held[len(freed) + 1])
            freed[-1].release()
            return True
        return False

    assert shift_context(slot, memory, BOS, make_room)
    assert slot.tokens == memory.tokens(0) == [*range(6), *range(66, 127)]
    assert 1 <= len(freed) < len(held) - 1
    for snapshot in held:
        snapshot.release()
    memory.check_integrity()


def place(memory, seq_id, tokens):
    tokens = np.array(tokens, np.int32)
    positions = np.arange(len(tokens), dtype=np.int32)
    memory.place([Segment(seq_id, 0, len(tokens))], positions, tokens)


def test_pieces_that_come_again_later_are_moved_not_read():
    client, context = client_of(answering(b"ok"))
    old = "the rules. [first paragraph of a page] [second paragraph of it] the end>"
    new = "the rules. [second paragraph of it] a question>"
    with client:
        ask(client, old)
        last = ask(client, new, n_cache_reuse=8)
        assert last.text == "ok"
        again = ask(client, new)
    # Also the “] ” that ends the moved paragraph, but not the “a” of “ a question”.
    n_moved = len("[second paragraph of it] ")
    assert last.timings.n_cached == 1 + len("the rules. [") + n_moved - 1
    assert last.timings.n_read == len("a question>")
    assert again.timings.n_read == 0


def test_short_pieces_are_not_worth_moving():
    client, context = client_of(answering(b"ok"))
    with client:
        ask(client, "abc defgh ijk>")
        last = ask(client, "abc ijk>", n_cache_reuse=50)
    assert last.timings.n_cached == 1 + len("abc ")
    assert not any(call[0] == "seq_add" for call in context.memory.calls)


def test_another_slots_pieces_are_shared_first():
    client, context = client_of(answering(b"ok"), n_slots=2)
    with client:
        first = ask(client, "start. long piece number one, long piece number two, end>")
        second = ask(client, "start. long piece number two, go>", n_cache_reuse=5, id_slot=0)
        assert second.id_slot != first.id_slot
        assert second.timings.n_read == len("go>")
        again = ask(client, "start. long piece number one, long piece number two, end>")
        assert again.timings.n_read == 0
