"""Several requests at once: batches, waiting, choice of slot, cancel, change, failures."""

import gc
import time

import pytest

import engine
from engine.client.client import EngineClient
from engine.errors import ContextFullError, InternalError
from tests.fakes.gate import Gate
from tests.fakes.model import answering, chaotic, loaded

STORY = b"once upon a time there was a mill"


def client_of(logits_of, n_slots=2, **options):
    model = loaded(logits_of, **options)
    return EngineClient.over(lambda progress: model, n_slots), model.context, Gate(model.context)


def ask(client, prompt="hi>", **options):
    """Submit a request and wait until the engine thread has it before it."""
    handle = client.submit(engine.CompletionRequest(prompt, temperature=0, **options))
    while client._loop._intake.n_waiting:
        time.sleep(0.0005)
    return handle


def test_answers_stream_side_by_side_and_prompts_join_running_answers():
    client, context, gate = client_of(answering(STORY))
    with client:
        first = ask(client, "one>")
        gate.step(3)
        second = ask(client, "two>")
        gate.open()
        assert first.result().text == second.result().text == STORY.decode()
    mixed = [sorted(set(seq_ids)) for _, _, seq_ids, _ in context.decodes]
    assert [0, 1] in mixed
    joining = next(d for d in context.decodes if set(d[2]) == {0, 1})
    assert joining[2] == [1, 0, 0, 0, 0]  # the running answer first, then the prompt
    assert joining[3] == [0, 4]


def test_a_prompt_is_cut_to_what_the_batch_has_left():
    client, context, gate = client_of(answering(b"ab"), n_batch=4)
    with client:
        running = ask(client, "x>")
        gate.step(1)
        long = ask(client, "123456>")
        gate.open()
        assert long.result().text == running.result().text == "ab"
    sizes = [len(tokens) for tokens, *_ in context.decodes]
    assert max(sizes) == 4


def test_a_long_prompt_is_read_in_short_pieces_while_others_are_answered():
    client, context, gate = client_of(answering(STORY * 3), n_batch=512)
    with client:
        running = ask(client, "x>")
        gate.step(1)
        long = ask(client, "y" * 600 + ">")
        gate.open()
        long.result()
        running.result()
        ask(client, "z" * 600 + ">", cache_prompt=False).result()
    sizes = [len(tokens) for tokens, *_ in context.decodes]
    assert max(sizes[: sizes.index(512)]) == 128
    assert sizes.count(512) == 1


def test_requests_wait_for_a_slot_in_order():
    client, _, gate = client_of(answering(b"a"), n_slots=1)
    done = []
    with client:
        handles = [
            ask(client, f"{i}>", on_event=lambda e, i=i: done.append((i, type(e).__name__)))
            for i in range(4)
        ]
        gate.wait()
        assert client.metrics().requests_processing == 1
        gate.open()
        assert all(handle.wait(10) for handle in handles)
    assert [i for i, kind in done if kind == "Finished"] == [0, 1, 2, 3]


def test_the_slot_asked_for_is_waited_for_and_then_preferred():
    client, _, gate = client_of(answering(b"abc"), n_slots=2)
    with client:
        zero = ask(client, "a>", id_slot=0)
        one = ask(client, "b>", id_slot=1)
        any_slot, again_one = ask(client, "c>"), ask(client, "d>", id_slot=1)
        gate.step(2)
        one.cancel()
        gate.open()
        assert one.result().stop_type == "cancelled"
        assert again_one.result().id_slot == 1
        assert zero.result().id_slot == any_slot.result().id_slot == 0


def test_a_slot_with_the_longest_prefix_is_chosen_then_an_empty_then_the_oldest():
    client, context, gate = client_of(answering(b"ok"), n_slots=3)
    gate.open()
    with client:
        assert ask(client, "alpha alpha>").result().id_slot == 2
        assert ask(client, "beta beta beta>").result().id_slot == 1
        assert ask(client, "alpha alpha>ok, more>").result().id_slot == 2
        assert ask(client, "gamma gamma gamma>").result().id_slot == 0
        assert ask(client, "delta delta delta>").result().id_slot == 1


def test_a_shared_beginning_is_shared_without_losing_the_other_conversation():
    client, context, gate = client_of(answering(b"ok"), n_slots=2)
    gate.open()
    system = "you are a patient teacher of history. "
    with client:
        first = ask(client, system + "when was the first long question asked, and by whom?>")
        id_first = first.result().id_slot
        second = ask(client, system + "but why?>").result()
        assert (second.id_slot, second.timings.n_cached) == (1 - id_first, len(system) + 1)
        assert second.timings.n_read == len("but why?>")
        again = ask(client, system + "when was the first long question asked, and by whom?>")
        assert again.result().timings.n_read == 0


def test_cancel_frees_the_slot_at_the_next_step_and_keeps_its_memory():
    client, context, gate = client_of(answering(STORY), n_slots=1)
    with client:
        handle = ask(client, "tell me>")
        gate.step(5)
        handle.cancel()
        gate.open()
        last = handle.result()
        assert last.stop_type == "cancelled"
        assert last.text == STORY[: len(last.text)].decode() != ""
        assert client.slots()[0].state == "idle"
        follow = ask(client, "tell me>").result()
        assert (follow.timings.n_read, follow.text) == (0, STORY.decode())


def test_cancel_in_the_middle_of_a_long_prompt():
    client, context, gate = client_of(answering(b"a"), n_slots=1, n_batch=4)
    with client:
        handle = ask(client, "a long prompt, read four tokens at a time>")
        gate.step(2)
        handle.cancel()
        gate.open()
        last = handle.result()
    assert (last.stop_type, last.text, last.timings.n_generated) == ("cancelled", "", 0)
    assert last.timings.n_read == 12
    assert context.n_tokens_decoded == 12


def test_cancel_stops_a_long_decode_and_the_others_go_on():
    client, context, gate = client_of(answering(STORY), n_slots=2, n_batch=64)
    with client:
        other = ask(client, "a>")
        gate.step(3)
        long = ask(client, "x" * 60 + ">")
        while not any(
            len(part.tokens) > 16 for part in client._loop._session.scheduler._in_flight.parts
        ):
            gate.step(1)
        long.cancel()
        assert context.aborted.is_set()
        gate.open()
        assert long.result().timings.n_read == 0
        assert other.result().text == STORY.decode()
        assert ask(client, "b>", n_predict=3).result().text == "onc"


def test_an_abort_that_comes_too_late_costs_nothing():
    client, context, gate = client_of(answering(STORY), n_slots=1)
    gate.open()
    with client:
        client.wait_until_ready()
        context.abort()
        client._loop._session.scheduler._is_abort_pending = True
        assert ask(client, "a>").result().text == STORY.decode()


def test_closing_stops_a_long_decode():
    client, context, gate = client_of(answering(STORY), n_slots=1, n_batch=64)
    long = ask(client, "x" * 60 + ">")
    gate.wait()
    client._loop.queue.close()
    client._loop._session.scheduler.interrupt()
    gate.open()
    client.close()
    assert long.result().stop_type == "cancelled"
    assert context.decodes == []


def test_cancelling_what_waits_ends_it_without_a_slot():
    client, context, gate = client_of(answering(STORY), n_slots=1)
    with client:
        running, waiting = ask(client, "a>"), ask(client, "b>")
        gate.step(2)
        waiting.cancel()
        gate.step(1)
        assert waiting.result().stop_type == "cancelled"
        gate.open()
        assert running.result().stop_type == "eos"
    assert all(set(seq_ids) == {0} for _, _, seq_ids, _ in context.decodes)


def test_a_vanished_handle_frees_its_slot():
    client, context, gate = client_of(answering(STORY * 20), n_slots=1, n_ctx=4000)
    with client:
        handle = ask(client, "a>")
        gate.step(3)
        del handle
        gc.collect()
        gate.open()
        assert ask(client, "b>", n_predict=1).result().text == "o"
    assert len(context.decodes) < 12


def test_a_listener_that_raises_frees_its_slot(caplog):
    def broken(event):
        raise RuntimeError("window gone")

    client, context, gate = client_of(answering(STORY * 20), n_slots=1, n_ctx=4000)
    gate.open()
    with client:
        assert ask(client, "a>", on_event=broken).wait(10)
        assert ask(client, "b>", n_predict=1).result().text == "o"
    assert "given up" in caplog.text


def test_parameters_change_at_the_next_token():
    client, context, gate = client_of(chaotic(3), n_slots=1)
    with client:
        handle = client.submit(engine.CompletionRequest([256, 7], temperature=5.0, seed=1))
        gate.step(4)
        handle.update(temperature=0, n_predict=7, stop="never")
        gate.open()
        changed = handle.result()
        assert changed.stop_type == "limit"
        assert len(changed.tokens) == 7
    client, _, gate = client_of(chaotic(3), n_slots=1)
    gate.open()
    with client:
        hot = client.submit(engine.CompletionRequest([256, 7], temperature=5.0, seed=1))
        hot = next(e for e in hot if isinstance(e, engine.TextDelta)).tokens
        assert hot[0] == changed.tokens[0]
        prompt = [256, 7, *changed.tokens[:4]]
        rest = client.submit(engine.CompletionRequest(prompt, temperature=0, n_predict=3))
        assert rest.result().tokens == changed.tokens[4:]


def test_an_impossible_wish_changes_nothing(caplog):
    client, context, gate = client_of(answering(STORY), n_slots=1)
    with client:
        handle = ask(client)
        gate.step(2)
        handle.update(samplers=["nonsense"])
        gate.open()
        assert handle.result().text == STORY.decode()
    assert "nonsense" in caplog.text


def test_the_sampler_learns_the_prompt_and_every_token():
    made = []
    client, context, gate = client_of(answering(b"ab"), n_slots=1)
    gate.open()
    with client:
        client.wait_until_ready()
        make = client._loop.loaded.make_sampler
        client._loop.loaded.make_sampler = lambda *given: made.append(make(*given)) or made[-1]
        for _ in range(2):  # the second time the prompt is not even read
            last = ask(client, "x>").result()
    for sampler in made:
        assert sampler.accepted == [256, *b"x>", *last.tokens]


def test_read_only_questions_are_answered_during_a_decode():
    client, context, gate = client_of(answering(STORY), n_slots=2)
    with client:
        assert client.wait_until_ready(10)
        handle = ask(client, "tell>")
        gate.step(3)
        status = client.slots()[1]
        assert (status.state, status.n_prompt, status.n_generated) == ("generating", 6, 3)
        assert client.metrics().n_decode_total == 3
        gate.open()
        handle.result()
        assert client.metrics().tokens_predicted_total == len(STORY) + 1
        assert client.metrics().prompt_tokens_total == 6


def test_a_batch_that_does_not_fit_is_halved_until_it_does():
    client, context, gate = client_of(answering(b"ok"), n_slots=1, n_batch=16)
    sizes = []

    def small_only(tokens, seq_ids):
        sizes.append(len(tokens))
        if len(tokens) > 4:
            raise ContextFullError("too many at once")

    context.before_decode = small_only
    with client:
        assert ask(client, "0123456789>").result().text == "ok"
    assert sizes[:3] == [12, 6, 3]


def test_idle_memory_is_freed_before_anything_fails():
    client, context, gate = client_of(answering(b"ok"), n_slots=2, n_cells=40)
    gate.open()
    with client:
        assert ask(client, "x" * 20 + ">").result().text == "ok"
        assert ask(client, "y" * 20 + ">").result().text == "ok"
        assert sorted(slot.n_tokens for slot in client.slots()) == [0, 24]


def test_memory_running_out_ends_one_answer_and_no_other():
    client, context, gate = client_of(answering(STORY), n_slots=2, n_cells=40)
    with client:
        handles = [ask(client, "a>"), ask(client, "b>")]
        gate.open()
        results = [handle.result() for handle in handles]
    assert sorted(r.stop_type for r in results) == ["eos", "limit"]
    cut = next(r for r in results if r.stop_type == "limit")
    assert cut.truncated
    assert STORY.decode().startswith(cut.text)


def test_a_prompt_that_finds_no_room_fails_and_running_answers_go_on():
    client, context, gate = client_of(answering(STORY), n_slots=2, n_cells=44)
    with client:
        running = ask(client, "a>")
        gate.step(2)
        big = ask(client, "b" * 50 + ">")
        gate.open()
        failed = list(big)[-1]
        assert failed.kind == "context full"
        assert running.result().text == STORY.decode()


@pytest.mark.parametrize("error", [InternalError("broken"), ValueError("broken"), MemoryError()])
def test_an_error_stays_with_the_slot_it_belongs_to(error):
    client, context, gate = client_of(answering(STORY), n_slots=2)
    with client:
        good = ask(client, "good>")
        gate.step(3)
        bad = ask(client, "bad !>")

        def fail(tokens, seq_ids):
            if ord("!") in tokens:
                raise error

        gate.open()
        context.before_decode = fail
        failed = list(bad)[-1]
        assert isinstance(failed, engine.Failed)
        assert good.result().text == STORY.decode()
        assert ask(client, "again>", n_predict=4).result().text == "once"


def test_a_sampler_that_fails_ends_its_own_answer_only():
    client, context, gate = client_of(answering(STORY), n_slots=2)
    with client:
        client.wait_until_ready()
        make = client._loop.loaded.make_sampler

        def make_or_break(request, prompt):
            sampler = make(request, prompt)
            if request.params.top_k == 13:
                sampler.accept = lambda token: 1 / 0
            return sampler

        client._loop.loaded.make_sampler = make_or_break
        good, bad = ask(client, "good>"), ask(client, "bad>", top_k=13)
        gate.open()
        failed = list(bad)[-1]
        assert (failed.kind, "division" in failed.message) == ("internal", True)
        assert good.result().text == STORY.decode()


def test_several_answers_share_one_reading_of_the_prompt():
    client, context, gate = client_of(chaotic(), n_slots=3)
    gate.open()
    with client:
        request = engine.CompletionRequest([256, *range(20)], n=3, seed=5, n_predict=6)
        events = list(client.submit(request))
        finished = {e.index: e for e in events if isinstance(e, engine.Finished)}
        assert sorted(finished) == [0, 1, 2]
        assert [finished[i].seed for i in range(3)] == [5, 6, 7]
        assert len({finished[i].tokens for i in range(3)}) == 3
        assert [finished[i].timings.n_read for i in range(3)] == [21, 0, 0]
        for i in range(3):
            deltas = [e for e in events if isinstance(e, engine.TextDelta) and e.index == i]
            assert "".join(e.text for e in deltas) == finished[i].text
            alone = client.submit(request.replace(n=1, seed=5 + i)).result()
            assert alone.tokens == finished[i].tokens
        assert sum(slot.n_tokens > 0 for slot in client.slots()) == 1
    assert sum(call[0] == "seq_cp" for call in context.memory.calls) >= 2


def test_a_group_waits_until_it_has_all_its_slots_and_is_cancelled_as_one():
    client, context, gate = client_of(answering(STORY), n_slots=2)
    with client:
        single = ask(client, "a>")
        group = ask(client, "b>", n=2)
        gate.step(2)
        assert client.metrics().requests_deferred == 1
        single.cancel()
        gate.step(3)
        assert client.metrics().requests_processing == 2
        group.cancel()
        gate.open()
        finals = [e for e in group if isinstance(e, engine.Finished)]
        assert [e.stop_type for e in finals] == ["cancelled"] * 2


def test_saved_slots_come_back_and_a_bad_file_changes_nothing(tmp_path):
    client, context, gate = client_of(answering(b"ok"), n_slots=2)
    gate.open()
    with client:
        first = ask(client, "remember this>", id_slot=0).result()
        saved = client.save_slot(0, tmp_path / "a.state")
        assert saved.n_tokens == first.timings.n_prompt + 2
        assert client.erase_slot(0).n_tokens == saved.n_tokens
        assert client.slots()[0].n_tokens == 0
        with pytest.raises(engine.StateFileError):
            client.restore_slot(0, tmp_path / "missing.state")
        assert client.restore_slot(1, tmp_path / "a.state").n_tokens == saved.n_tokens
        follow = ask(client, "remember this>ok, and>").result()
        assert follow.id_slot == 1
        assert follow.timings.n_read == len(", and>")
        with pytest.raises(engine.RequestError, match="no slot 7"):
            client.erase_slot(7)
