"""Rules of slots and tasks that no other test states: busy slots, groups, wishes, rates, sleep."""

import threading
import time

import pytest

import engine
from engine.client.client import EngineClient
from engine.errors import ContextFullError
from engine.server.loop import Keeping
from tests.fakes.gate import Gate
from tests.fakes.model import BOS, EOS, answering, chaotic, loaded
from tests.fakes.paged import PagedContext


def client_of(logits_of=None, n_slots=2, sleep_s=-1, **options):
    model = loaded(logits_of or answering(b"a story"), **options)
    keeping = Keeping(1 << 20, None, 0, sleep_s)
    client = EngineClient.over(lambda progress: model, n_slots, keeping=keeping)
    return client, model.context


def ask(client, prompt="hi>", **options):
    return client.submit(engine.CompletionRequest(prompt, temperature=0, **options))


def restless(tokens):
    row = chaotic()(tokens)
    row[EOS] = -100
    return row


def test_files_of_a_busy_slot_wait_until_it_is_free(tmp_path):
    client, context = client_of(n_slots=1)
    gate, done = Gate(context), []
    path = tmp_path / "slot"
    with client:
        running = ask(client)
        gate.step(2)

        def act():
            done.append(client.save_slot(0, path).n_tokens)
            done.append(client.erase_slot(0).n_tokens)
            done.append(client.restore_slot(0, path).n_tokens)

        acting = threading.Thread(target=act)
        acting.start()
        gate.step(2)
        assert (done, path.exists()) == ([], False)
        gate.open()
        assert running.result().text == "a story"
        acting.join(10)
        n_known = 1 + len("hi>a story")
        assert done == [n_known] * 3
        assert ask(client, "hi>a story, and>").result().timings.n_read == len(", and>")


def test_a_prompt_that_fails_ends_every_answer_of_its_group_once():
    client, context = client_of(n_slots=4, n_batch=8)
    context.before_decode = lambda tokens, seq_ids: 1 / 0 if len(context.decodes) == 2 else None
    with client:
        events = list(ask(client, "a longer prompt of many pieces>", n=3))
        finals = [e for e in events if isinstance(e, (engine.Failed, engine.Finished))]
        assert sorted(e.index for e in finals) == [0, 1, 2]
        assert {type(e) for e in finals} == {engine.Failed}
        assert all(slot.state == "idle" for slot in client.slots())
        context.before_decode = lambda *_: None
        assert ask(client).result().text == "a story"


def test_one_answer_of_a_group_that_fails_leaves_the_others():
    client, context = client_of(n_slots=3)
    with client:
        client.wait_until_ready(10)
        make = client._loop.loaded.make_sampler

        def made(request, prompt):
            sampler = make(request, prompt)
            if request.params.seed == 8:
                sampler.apply = lambda row: 1 / 0
            return sampler

        client._loop.loaded.make_sampler = made
        events = list(ask(client, n=3, seed=7))
        finals = {e.index: e for e in events if isinstance(e, (engine.Failed, engine.Finished))}
        assert [type(finals[i]).__name__ for i in range(3)] == ["Finished", "Failed", "Finished"]
        assert finals[0].text == finals[2].text == "a story"


def test_a_file_too_long_for_the_slot_is_refused_and_the_slot_goes_on(tmp_path):
    long = PagedContext(restless, 512, 2)
    client, _ = client_of(context=long, forks=(1,), n_ctx=512, n_slots=1)
    with client:
        ask(client, [BOS, *range(200)], n_predict=2).result()
        client.save_slot(0, tmp_path / "long")
    short = PagedContext(restless, 128, 2)
    client, _ = client_of(context=short, forks=(1,), n_ctx=128, n_slots=1)
    with client:
        first = ask(client, [BOS, *range(50)], n_predict=3).result()
        with pytest.raises(ContextFullError, match="202 tokens and the context holds 128"):
            client.restore_slot(0, tmp_path / "long")
        again = ask(client, [BOS, *range(50)], n_predict=3).result()
        assert (again.timings.n_read, again.tokens) == (0, first.tokens)


def test_a_wish_left_before_the_start_counts_from_the_first_token():
    client, context = client_of(n_slots=1)
    gate = Gate(context)
    with client:
        running, waiting = ask(client), ask(client, "other>")
        gate.step(1)
        waiting.update(n_predict=2)
        gate.open()
        assert running.result().text == "a story"
        last = waiting.result()
        assert (last.text, last.stop_type) == ("a ", "limit")


@pytest.mark.parametrize(("wanted", "slot"), [(0, 0), (1, 1), (5, 1), (6, 0)])
def test_a_slot_is_asked_for_by_its_number_modulo_the_slots(wanted, slot):
    client, _ = client_of()
    with client:
        assert ask(client, id_slot=wanted).result().id_slot == slot


def test_asking_for_figures_all_the_time_does_not_keep_it_awake():
    client, _ = client_of(sleep_s=0.05)
    with client:
        ask(client).result()
        until = time.monotonic() + 10
        while client.state != "asleep":
            assert time.monotonic() < until
            client.metrics()
            client.slots()
            client.known_prefix("hi>")


def test_rates_are_of_the_steps_and_zero_where_there_are_none():
    timings = engine.Timings(100, 60, 40, 200.0, 250.0, 11, 500.0)
    assert (timings.read_tps, timings.generate_tps) == (200.0, 20.0)
    for nothing in (engine.Timings(), engine.Timings(5, 5, 0, 3.0, 3.0, 1, 0.0)):
        assert (nothing.read_tps, nothing.generate_tps) == (0.0, 0.0)
    progress = engine.PromptProgress(100, 20, 40, 400.0)
    assert (progress.done, progress.left_ms) == (0.6, 400.0)
    assert engine.PromptProgress(100, 20, 0, 4.0).left_ms is None


def test_an_answer_that_ends_lets_the_oldest_task_in_and_leaves_its_memory_known():
    client, context = client_of(n_slots=1)
    gate = Gate(context)
    with client:
        order = []
        handles = [ask(client, f"{i}>", on_event=lambda e, i=i: order.append(i)) for i in range(4)]
        gate.open()
        assert all(handle.wait(10) for handle in handles)
        assert order == sorted(order)
        for i in (3, 1, 0, 2):
            assert ask(client, f"{i}>a story, then>").result().timings.n_read == len(", then>")


def test_an_abort_that_comes_too_late_stops_nothing_else_either():
    """It was for a decode that has just ended; a text that is embedded next knows nothing of it."""
    client, context = client_of(n_slots=1, n_batch=64)
    decode, late = context.decode, []

    def ending(tokens, *given, **options):
        logits = decode(tokens, *given, **options)
        if len(tokens) > 16:
            client._loop._session.scheduler.interrupt()
            late.append(context.aborted.is_set())
        return logits

    def embed_piece(tokens, start):
        if context.aborted.is_set():
            context.aborted.clear()
            raise engine.RequestError("The decode was stopped.")

    context.decode, context.embed_piece = ending, embed_piece
    with client:
        asked = ask(client, "a prompt of more than sixteen tokens>", n_predict=1)
        assert len(client.embed(["a text"])) == 1
        assert asked.result().stop_type == "limit"
    assert late == [True]
