"""Isolation of every test: no network, its own folders, no thread left behind."""

import os
import socket
import threading

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Fail a test that connects anywhere but to this machine."""
    connect = socket.socket.connect

    def guarded(self, address):
        host = address[0] if isinstance(address, tuple) else ""
        if host not in ("", "127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"a test tried to reach {address}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True)
def no_thread_left():
    """Fail a test that leaves a thread of ours running."""
    before = set(threading.enumerate())
    yield
    left = [t for t in threading.enumerate() if t not in before and t.is_alive()]
    for thread in left:
        thread.join(timeout=2)
    left = [t.name for t in left if t.is_alive() and not t.name.startswith(("pytest", "Dummy"))]
    assert not left, f"threads left running: {left}"
