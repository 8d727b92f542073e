"""A disk that does not answer holds up no answer and no sleep, and the end not for long."""

import logging
import os
import threading
import time

import numpy as np
import pytest

import engine
from engine.client.client import EngineClient
from engine.errors import MachineError
from engine.memory import KVLayer, Memory, Segment
from engine.memory.state_file import sweep_unfinished
from engine.server import file_thread
from engine.server.file_thread import FileThread
from engine.server.loop import Keeping
from tests.fakes.model import ListSnapshot, answering, loaded

PROMPT = "tell me of the mill and of the river>"


class Disk:
    """Writes that begin and do not end until the test lets them."""

    def __init__(self, monkeypatch):
        self.is_writing, self.may_end = threading.Event(), threading.Event()
        self.write = ListSnapshot.write
        stuck = lambda snapshot, *given, **options: self.stuck(snapshot, *given, **options)  # noqa: E731
        monkeypatch.setattr(ListSnapshot, "write", stuck)
        monkeypatch.setattr(file_thread, "LEAVE_S", 0.1)

    def stuck(self, snapshot, *given, **options):
        self.is_writing.set()
        assert self.may_end.wait(30)
        return self.write(snapshot, *given, **options)


@pytest.fixture
def disk(monkeypatch):
    disk = Disk(monkeypatch)
    yield disk
    disk.may_end.set()


def client_of(folder=None, sleep_s=-1):
    model = loaded(answering(b"a story"))
    keeping = Keeping(1 << 20, folder, 1 << 30, sleep_s)
    return EngineClient.over(lambda progress: model, 1, keeping=keeping)


def ask(client, prompt=PROMPT):
    return client.submit(engine.CompletionRequest(prompt, temperature=0)).result()


def test_the_end_waits_so_long_and_says_so(tmp_path, disk, caplog):
    client = client_of(tmp_path)
    ask(client)
    begun = client.keep(PROMPT, tmp_path / "one")
    assert disk.is_writing.wait(10)
    queued = client.keep(PROMPT, tmp_path / "two")
    until = time.monotonic() + 10
    while len(client._loop._files._open) < 2:
        assert time.monotonic() < until
        time.sleep(0.001)
    with caplog.at_level(logging.WARNING):
        closing = threading.Thread(target=client.close)
        closing.start()
        closing.join(10)
        assert not closing.is_alive(), "the end waits for the disk"
    assert "The disk has not answered" in caplog.text
    for future in (begun, queued):
        with pytest.raises(MachineError, match="not answered"):
            future.result(1)
    assert client.state == "closed"
    (thread,) = [t for t in threading.enumerate() if t.name == "saved memory"]
    disk.may_end.set()
    thread.join(10)
    assert not thread.is_alive()
    assert not (tmp_path / "two").exists()


def test_a_write_that_ends_in_time_is_waited_for(tmp_path, disk, monkeypatch):
    monkeypatch.setattr(file_thread, "LEAVE_S", 10)
    client = client_of(tmp_path)
    ask(client)
    begun, queued = (client.keep(PROMPT, tmp_path / name) for name in ("one", "two"))
    assert disk.is_writing.wait(10)
    ask(client, "another>")  # by now the second one has been taken too
    closing = threading.Thread(target=client.close)
    closing.start()
    disk.may_end.set()
    closing.join(10)
    assert begun.result(0).n_tokens == queued.result(0).n_tokens == 1 + len(PROMPT)
    assert (tmp_path / "two").exists()


def test_answers_go_on_and_so_do_figures(tmp_path, disk):
    with client_of(tmp_path) as client:
        ask(client)
        client.keep(PROMPT, tmp_path / "one")
        assert disk.is_writing.wait(10)
        assert ask(client, "and another>").text == "a story"
        assert client.metrics().prompts_saved_bytes == 0
        assert client.known_prefix(PROMPT).n_tokens > 0


def test_sleep_that_cannot_write_keeps_the_model_and_does_not_pile_up(tmp_path, disk):
    with client_of(tmp_path, sleep_s=0.01) as client:
        for i in range(3):
            ask(client, f"conversation {i} of some length>")
            assert disk.is_writing.wait(10)
            time.sleep(0.05)
        assert client.state == "ready"
        assert len(client._loop._files._open) == 1
        disk.may_end.set()
        until = time.monotonic() + 10
        while client.state != "asleep":
            assert time.monotonic() < until, client.state
            time.sleep(0.005)


def test_deleting_on_a_stuck_disk_blocks_no_figures(tmp_path, monkeypatch):
    may_end, is_deleting = threading.Event(), threading.Event()

    def stuck(path):
        is_deleting.set()
        assert may_end.wait(30)

    monkeypatch.setattr("engine.server.saved_prompts._delete", stuck)
    with client_of(tmp_path) as client:
        client._loop.saved._limit_bytes = 10
        for name in ("one", "two"):
            ask(client)
            client.keep(PROMPT, tmp_path / name)
        assert is_deleting.wait(10)
        asked = threading.Thread(target=client.metrics)
        asked.start()
        asked.join(5)
        assert not asked.is_alive(), "figures wait for the disk"
        may_end.set()


def test_jobs_of_a_thread_left_behind_do_nothing_more():
    may_end, ran = threading.Event(), []
    files = FileThread(lambda: None)
    stuck = files.write(lambda: may_end.wait(30))
    later = files.write(lambda: ran.append(1))
    thread = files.thread
    assert files.close(0.05) is False
    with pytest.raises(MachineError):
        later.result(0)
    may_end.set()
    thread.join(10)
    assert not thread.is_alive()
    assert ran == []
    with pytest.raises(MachineError):
        stuck.result(0)


def test_what_was_left_half_written_is_swept_at_the_next_start(tmp_path, monkeypatch):
    memory = Memory([KVLayer(1, 16, 16)], 256, 1, "f16", "f16")
    memory.place([Segment(0, 0, 5)], np.arange(5, dtype=np.int32), np.arange(5, dtype=np.int32))
    left = tmp_path / ".chat-1.safetensors.abc.part"
    left.write_bytes(b"half")
    (tmp_path / "notes.part").write_bytes(b"not ours")
    seen = []

    def look(descriptor):
        seen.append((sweep_unfinished(tmp_path), len(list(tmp_path.glob(".*.part")))))

    monkeypatch.setattr(os, "fsync", look)
    snapshot = memory.snapshot(0)
    snapshot.write(tmp_path / "chat-2.safetensors")
    snapshot.release()
    assert seen == [(1, 1)]  # the one that is just being written stays
    assert (tmp_path / "chat-2.safetensors").exists()
    left.write_bytes(b"half")
    with client_of(tmp_path) as client:
        assert client.wait_until_ready(10)
        ask(client)
    assert not left.exists()
    assert (tmp_path / "notes.part").exists()
