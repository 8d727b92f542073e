"""Context shift and chunk reuse: which tokens stay, where they move, and what is read again."""

import pytest

import engine
from engine.client.client import EngineClient
from engine.errors import ContextFullError
from tests.fakes.model import BOS, answering, chaotic, loaded


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
