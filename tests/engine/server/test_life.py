"""The life of the engine thread: loading, failing to load, closing at any time."""

import dataclasses
import threading
import time

import pytest

import engine
from engine.client.client import EngineClient
from tests.fakes.gate import Gate
from tests.fakes.model import answering, loaded


def ask(client, prompt="hi>", **options):
    return client.submit(engine.CompletionRequest(prompt, temperature=0, **options))


def test_requests_before_the_model_is_loaded_wait_for_it():
    may_load, stages = threading.Event(), []

    def load(progress):
        progress("map", 0.5)
        assert may_load.wait(10)
        return loaded(answering(b"ok"))

    with EngineClient.over(load, 1, lambda stage, done: stages.append((stage, done))) as client:
        handle = ask(client)
        assert client.state == "loading"
        assert client.slots() == []
        assert client.wait_until_ready(0) is False
        may_load.set()
        assert handle.result().text == "ok"
        assert client.state == "ready"
        assert client.wait_until_ready() is True
    assert stages == [("map", 0.5)]
    assert client.state == "closed"


def test_what_few_need_is_prepared_beside_the_answers_and_given_up_at_the_end():
    begun, given_up = threading.Event(), threading.Event()

    def prepare_rest(progress):
        begun.set()
        try:
            while True:
                progress("compile", 0.0)
                time.sleep(0.001)
        finally:
            given_up.set()

    scripted = dataclasses.replace(loaded(answering(b"ok")), prepare_rest=prepare_rest)
    with EngineClient.over(lambda _: scripted, 1) as client:
        assert begun.wait(10)
        assert ask(client).result().text == "ok"
        assert not given_up.is_set()
    assert given_up.is_set()


@pytest.mark.parametrize(
    ("error", "cls"),
    [
        (engine.UnsupportedModelError("no such architecture"), engine.UnsupportedModelError),
        (ValueError("oops"), engine.InternalError),
        (MemoryError(), engine.InternalError),
    ],
)
def test_a_failed_load_reaches_everyone(error, cls):
    may_load = threading.Event()

    def load(progress):
        assert may_load.wait(10)
        raise error

    with EngineClient.over(load, 1) as client:
        early = ask(client, n=2)
        may_load.set()
        with pytest.raises(cls):
            client.wait_until_ready()
        assert [type(e) for e in early] == [engine.Failed] * 2
        with pytest.raises(cls):
            ask(client).result()
        with pytest.raises(cls):
            client.erase_slot(0)
        assert client.state == "failed"


def test_closing_while_loading_gives_the_load_up():
    in_load, closing = threading.Event(), threading.Event()

    def load(progress):
        in_load.set()
        assert closing.wait(10)
        while True:
            progress("weights", 0.1)

    client = EngineClient.over(load, 1)
    handle = ask(client)
    assert in_load.wait(10)
    client._loop.queue.close()
    closing.set()
    client.close()
    assert handle.result().stop_type == "cancelled"
    with pytest.raises(engine.InternalError, match="closed"):
        client.wait_until_ready()


def test_closing_ends_running_and_waiting_answers_and_frees_the_model():
    model = loaded(answering(b"abcdef"))
    gate, freed = Gate(model.context), []
    model.close = lambda: freed.append(threading.current_thread().name)
    client = EngineClient.over(lambda progress: model, 1)
    running, waiting = ask(client), ask(client)
    gate.step(3)
    client._loop.queue.close()
    gate.open()
    client.close()
    client.close()
    last = running.result()
    assert (last.stop_type, last.text) == ("cancelled", "abcd"[: len(last.text)])
    assert last.text
    assert waiting.result().stop_type == "cancelled"
    assert freed == ["engine"]
    with pytest.raises(engine.InternalError, match="closed"):
        ask(client).result()


def test_closing_from_a_listener_does_not_wait_for_itself():
    clients = []

    def close(event):
        clients[0].close()

    clients.append(EngineClient.over(lambda progress: loaded(answering(b"ok")), 1))
    handle = ask(clients[0], on_event=close)
    assert handle.wait(10)
    clients[0].close()


@pytest.mark.parametrize("ending", ["well", "refused", "unloadable", "closed", "cancelled"])
def test_every_event_comes_from_the_engine_thread(ending):
    names, may_load = [], threading.Event()

    def load(progress):
        assert may_load.wait(10)
        if ending == "unloadable":
            raise ValueError("oops")
        return loaded(answering(b"ok"), n_ctx=64)

    client = EngineClient.over(load, 1)
    prompt = "x" * 200 if ending == "refused" else "hi>"
    note = lambda event: names.append(threading.current_thread().name)  # noqa: E731
    handles = [ask(client, prompt, on_event=note, n=1) for _ in range(3)]
    if ending == "cancelled":
        handles[0].cancel()
    if ending == "closed":
        client._loop.queue.close()
    may_load.set()
    assert all(handle.wait(10) for handle in handles)
    client.close()
    assert set(names) == {"engine"}
    assert len(names) >= 3
    last = ask(client, on_event=note)
    assert last.is_finished
    assert names[-1] == threading.current_thread().name


def test_a_step_that_breaks_ends_what_ran_and_the_engine_goes_on():
    with EngineClient.over(lambda progress: loaded(answering(b"ok")), 1) as client:
        client.wait_until_ready()
        scheduler = client._loop._session.scheduler
        gather, scheduler._gather = scheduler._gather, lambda: 1 / 0
        failed = list(ask(client))[-1]
        assert failed.kind == "internal"
        scheduler._gather = gather
        assert ask(client).result().text == "ok"


def test_plain_text_can_be_counted():
    with EngineClient.over(lambda progress: loaded(answering(b"ok")), 1) as client:
        assert client.tokenize("abc") == [97, 98, 99]
