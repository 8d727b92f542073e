"""The tasks on their way to the engine thread: posted from any thread, or deferred for a slot.

Decision: no heartbeat task is posted while slots are busy; `take(wait=False)` returns at once,
which keeps the loop turning without an entry in the queue per step.
"""

import threading
from collections import deque
from collections.abc import Callable

from engine.server.task import Task


class TaskQueue:
    """Posted tasks (any thread) and deferred tasks (engine thread only)."""

    def __init__(self) -> None:
        self._posted: deque[Task] = deque()
        self._deferred: deque[Task] = deque()
        self._changed = threading.Condition()
        self._is_woken = False
        self.is_closed = False

    @property
    def n_deferred(self) -> int:
        """Return how many tasks wait, posted or deferred."""
        return len(self._posted) + len(self._deferred)

    @property
    def has_posted(self) -> bool:
        """Return whether a task waits to be taken, or the queue is closed."""
        return bool(self._posted) or self.is_closed

    def wait_posted(self) -> None:
        """Block until there is a task, or the queue is closed; being woken is nothing."""
        with self._changed:
            self._changed.wait_for(lambda: self.has_posted)

    def post(self, task: Task) -> bool:
        """Add a task; return False when the queue is closed and nobody will take it."""
        with self._changed:
            if self.is_closed:
                return False
            self._posted.append(task)
            self._changed.notify()
            return True

    def wake(self) -> None:
        """Let a waiting `take` return, to look at wishes left in mailboxes."""
        with self._changed:
            self._is_woken = True
            self._changed.notify()

    def close(self) -> None:
        """Take no more tasks and wake the engine thread."""
        with self._changed:
            self.is_closed = True
            self._changed.notify()

    def take(self, wait: bool, timeout: float | None = None) -> list[Task]:
        """Return all posted tasks in order; with `wait`, block until posted, woken or closed.

        Blocks `timeout` seconds at most, if given.
        """
        with self._changed:
            if wait:
                self._changed.wait_for(
                    lambda: self._posted or self._is_woken or self.is_closed, timeout
                )
            self._is_woken = False
            tasks = list(self._posted)
            self._posted.clear()
            return tasks

    def defer(self, task: Task) -> None:
        """Keep a task until a slot is released."""
        self._deferred.append(task)

    def put_forward(self, id_slot: int) -> None:
        """Post the deferred tasks again, in front: those that want this slot, then the oldest."""
        if not self._deferred:
            return
        in_order = sorted(self._deferred, key=lambda task: task.id_slot != id_slot)
        self._deferred.clear()
        with self._changed:
            self._posted.extendleft(reversed(in_order))

    def drop_deferred(self, is_dropped: Callable[[Task], bool]) -> list[Task]:
        """Remove and return the deferred tasks that a condition holds for."""
        dropped = [task for task in self._deferred if is_dropped(task)]
        for task in dropped:
            self._deferred.remove(task)
        return dropped
