"""A fixture for every folder whose tests use a memory: its books must agree after each test."""

import weakref

import pytest

from engine.memory import Memory


@pytest.fixture(autouse=True)
def whole_books(monkeypatch):
    """Check every memory that was made during the test or lives on from an earlier one."""
    made = _MADE
    start = Memory.__init__

    def watched(self, *arguments, **options):
        start(self, *arguments, **options)
        made.add(self)

    monkeypatch.setattr(Memory, "__init__", watched)
    yield
    for memory in list(made):
        memory.check_integrity()


_MADE: weakref.WeakSet[Memory] = weakref.WeakSet()
