"""The two-way mailbox between one request and its listener: events out, wishes in.

The engine thread delivers events and looks at the wishes before each token; the listener takes
events and leaves wishes from any thread. A wish is a plain flag or a queue append: leaving one
never waits for the engine, not even from a garbage collector.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from engine.server.events import Event, Failed, Finished

log = logging.getLogger(__name__)


class Mailbox:
    """Events of one request with `n_answers` answers, each ending in one Finished or Failed."""

    def __init__(self, n_answers: int = 1, on_event: Callable[[Event], None] | None = None) -> None:
        self._events: deque[Event] = deque()
        self._arrived = threading.Condition()
        self._on_event = on_event
        self._changes: list[dict[str, Any]] = []
        self._n_open = n_answers
        self.wants_cancel = False
        self.is_abandoned = False  # nobody listens any more: the slot is to be freed

    @property
    def is_finished(self) -> bool:
        """Return whether every answer has ended."""
        return self._n_open == 0

    def deliver(self, event: Event) -> None:
        """Hand an event to the listener. Engine thread only.

        A listener that raises is gone: the error is logged and the request is given up.
        """
        if self._on_event is not None and not self.is_abandoned:
            try:
                self._on_event(event)
            except Exception:
                log.exception("a listener failed; its request is given up")
                self.is_abandoned = True
        is_last = isinstance(event, (Finished, Failed))
        if self._on_event is not None and not is_last:
            return  # who waits, waits for the end: waking it for each token would cost a step time
        with self._arrived:
            if self._on_event is None:
                self._events.append(event)
            if is_last:
                self._n_open -= 1  # only now: who waits for the end has heard everything
            self._arrived.notify_all()

    def take(self, timeout: float | None = None) -> Event | None:
        """Return the next event, waiting for it; None after the last one or after `timeout` s."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._events or self.is_finished, timeout)
            return self._events.popleft() if self._events else None

    def wait_finished(self, timeout: float | None = None) -> bool:
        """Wait until every answer has ended; return False after `timeout` seconds."""
        with self._arrived:
            return self._arrived.wait_for(lambda: self.is_finished, timeout)

    def leave_changes(self, changes: dict[str, Any]) -> None:
        """Ask for other parameters from the next token on."""
        self._changes.append(changes)

    def changes_after(self, n_heard: int) -> tuple[dict[str, Any], int]:
        """Return the parameters asked for after the first `n_heard` times, and how often by now.

        Each answer of the request hears every change, so none is taken out.
        """
        n_now = len(self._changes)
        merged: dict[str, Any] = {}
        for changes in self._changes[n_heard:n_now]:
            merged.update(changes)
        return merged, n_now
