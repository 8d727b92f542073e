"""An idle model leaves memory; the next request brings it back, and conversations go on."""

import threading
import time

import pytest

import engine
from engine.client.client import EngineClient
from engine.errors import ModelFileError
from engine.memory.state_file import read_state
from engine.server.loop import Keeping
from tests.fakes.model import BOS, EOS, answering, chaotic, loaded
from tests.fakes.paged import PagedContext

PROMPT = "tell me of the mill and of the river>"


class Loads:
    """Counts loads and closes of fresh scripted models."""

    def __init__(self, **options):
        self.options = options
        self.models = []
        self.n_closed = 0
        self.error = None

    def __call__(self, progress):
        progress("map", 1.0)
        if self.error and self.models:
            raise self.error
        model = loaded(answering(b"a story"), **self.options)
        model.close = self._count
        self.models.append(model)
        return model

    def _count(self):
        self.n_closed += 1


def client_of(loads, n_slots=2, folder=None, sleep_s=0.02):
    keeping = Keeping(1 << 20, folder, 1 << 20, sleep_s)
    return EngineClient.over(loads, n_slots, keeping=keeping)


def ask(client, prompt=PROMPT, **options):
    return client.submit(engine.CompletionRequest(prompt, temperature=0, **options)).result()


def wait_asleep(client):
    until = time.monotonic() + 10
    while client.state != "asleep":
        assert time.monotonic() < until, client.state
        time.sleep(0.002)


@pytest.mark.parametrize("has_folder", [False, True])
def test_conversations_go_on_after_a_sleep(tmp_path, has_folder):
    loads = Loads()
    with client_of(loads, folder=tmp_path / "cache" if has_folder else None) as client:
        first = ask(client)
        ask(client, "another conversation of some length>", id_slot=first.id_slot)
        ask(client, "and a third one, in the other slot>", id_slot=1 - first.id_slot)
        for n_sleeps in range(1, 4):
            wait_asleep(client)
            assert (len(loads.models), loads.n_closed) == (n_sleeps, n_sleeps)
            assert [slot.n_tokens for slot in client.slots()] == [0, 0]
            assert client.known_prefix(PROMPT).where == "disk"
            again = ask(client)
            assert (again.timings.n_read, again.tokens) == (0, first.tokens)
            other = ask(client, "another conversation of some length>a story, and?>")
            assert other.timings.n_read <= len(", and?>")
        assert client.metrics().prompt_tokens_total < 200
        assert client._loop.saved.n_files <= 6
    assert loads.n_closed == len(loads.models)


def test_what_a_sleep_wrote_is_added_to_by_the_next(tmp_path):
    """Each conversation stays one file, and what it held already is not written again."""

    def restless(tokens):
        row = chaotic()(tokens)
        row[EOS] = -100
        return row

    def load(progress):
        context = PagedContext(restless, 4096, 4, snapshot_bytes=1 << 20)
        return loaded(None, context=context, forks=(3,), n_ctx=4096)

    keeping = Keeping(1 << 20, tmp_path, 1 << 30, 0.02)
    with EngineClient.over(load, 2, keeping=keeping) as client:
        told = {i: [BOS, *[i] * 40, *[*range(200)] * 6] for i in (1, 2)}
        sizes = []
        for turn in range(3):
            for i in told:
                told[i] += ask(client, told[i], n_predict=5).tokens
            wait_asleep(client)
            files = sorted(tmp_path.glob("asleep-*"))
            assert len(files) == 2
            sizes.append([path.stat().st_size for path in files])
            assert [len(read_state(path).pieces) for path in files] == [turn + 1] * 2
        for i in told:
            assert ask(client, [*told[i], 7], n_predict=1).timings.n_read == 2
    assert all(later - first < first / 3 for first, later in zip(*sizes[::2], strict=True))


def test_nothing_is_left_of_a_sleep_without_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with client_of(Loads()) as client:
        ask(client)
        wait_asleep(client)
        assert list(tmp_path.rglob("*.safetensors"))
    assert list(tmp_path.iterdir()) == []


def test_asking_what_is_known_wakes_nobody():
    loads = Loads()
    with client_of(loads) as client:
        ask(client)
        wait_asleep(client)
        assert client.tokenize("abc") == [97, 98, 99]
        assert client.metrics().requests_processing == 0
        assert client.known_prefix(PROMPT).n_tokens == len(PROMPT) + 1
        time.sleep(0.05)
        assert client.state == "asleep"
        assert len(loads.models) == 1


def test_a_model_that_is_gone_when_it_should_wake_fails_every_request():
    loads = Loads()
    loads.error = ModelFileError("the file was deleted")
    with client_of(loads) as client:
        ask(client)
        wait_asleep(client)
        with pytest.raises(ModelFileError, match="deleted"):
            ask(client)
        assert client.state == "failed"
        with pytest.raises(ModelFileError):
            ask(client)


def test_a_request_that_comes_while_it_falls_asleep_is_answered_at_once(monkeypatch):
    loads = Loads()
    is_writing, may_end = threading.Event(), threading.Event()
    from tests.fakes.model import ListSnapshot

    write = ListSnapshot.write

    def slow(self, *given, **options):
        is_writing.set()
        assert may_end.wait(10)
        return write(self, *given, **options)

    monkeypatch.setattr(ListSnapshot, "write", slow)
    with client_of(loads) as client:
        first = ask(client)
        assert is_writing.wait(10)
        again = ask(client)
        assert (again.timings.n_read, again.tokens) == (0, first.tokens)
        assert (len(loads.models), loads.n_closed) == (1, 0)
        may_end.set()
        wait_asleep(client)


def test_running_answers_and_open_questions_keep_it_awake():
    loads = Loads()
    with client_of(loads, n_slots=1, sleep_s=0.05) as client:
        client.wait_until_ready()
        context = loads.models[0].context
        context.before_decode = lambda tokens, seq_ids: time.sleep(0.02)
        handles = [client.submit(engine.CompletionRequest("x>", temperature=0)) for _ in range(3)]
        assert [handle.result().text for handle in handles] == ["a story"] * 3
        assert len(loads.models) == 1


def test_closing_ends_the_sleep_and_leaves_no_thread():
    before = set(threading.enumerate())
    client = client_of(Loads())
    ask(client)
    wait_asleep(client)
    client.close()
    client.close()
    assert client.state == "closed"
    assert set(threading.enumerate()) <= before


def test_without_a_limit_it_never_sleeps():
    with client_of(Loads(), sleep_s=-1) as client:
        ask(client)
        time.sleep(0.1)
        assert client.state == "ready"


def test_slots_are_restored_erased_and_asked_after_a_sleep(tmp_path):
    with client_of(Loads()) as client:
        first = ask(client)
        client.save_slot(first.id_slot, tmp_path / "one")
        wait_asleep(client)
        assert client.restore_slot(0, tmp_path / "one").n_tokens > len(PROMPT)
        wait_asleep(client)
        assert client.erase_slot(0).n_tokens == 0
        assert client.decide("x>", ["a", "b"]).best == "a"
