"""A fixture for every test of the engine: the books of every memory agree when it has ended."""

import logging
import weakref

import pytest

from engine.memory import Memory
from engine.server.loop import EngineLoop

BROKEN = "contradicts itself"  # what an engine says that found its own books broken


class Heard(logging.Handler):
    """The reports of engines that found their own books broken."""

    def __init__(self):
        super().__init__()
        self.reports = []

    def emit(self, record):
        if BROKEN in record.getMessage():
            self.reports.append(record.getMessage())


def check_books(memories, loops, reports):
    """Check every memory that no engine thread is at work with; those tell of themselves.

    Raises InternalError for broken books, AssertionError for what an engine has reported.
    """
    sessions = [loop._session for loop in loops if loop._thread.is_alive()]
    at_work = {id(session._context.memory) for session in sessions if session is not None}
    for memory in memories:
        if id(memory) not in at_work:
            memory.check_integrity()
    assert not reports, f"an engine found its memory broken: {reports}"


def _noting(start, made):
    def watched(self, *arguments, **options):
        start(self, *arguments, **options)
        made.add(self)

    return watched


@pytest.fixture(autouse=True)
def whole_books(monkeypatch, request):
    """Check every memory that was made during the test or lives on from an earlier one.

    A test that breaks books on purpose has the mark `broken_books`.
    """
    monkeypatch.setattr(Memory, "__init__", _noting(Memory.__init__, _MEMORIES))
    monkeypatch.setattr(EngineLoop, "__init__", _noting(EngineLoop.__init__, _LOOPS))
    heard = Heard()
    logging.getLogger("engine.server").addHandler(heard)
    yield heard
    logging.getLogger("engine.server").removeHandler(heard)
    if not request.node.get_closest_marker("broken_books"):
        check_books(list(_MEMORIES), list(_LOOPS), heard.reports)


_MEMORIES: weakref.WeakSet[Memory] = weakref.WeakSet()
_LOOPS: weakref.WeakSet[EngineLoop] = weakref.WeakSet()
