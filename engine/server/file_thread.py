"""FileThread: the one thread for slow files: saved memory, and kernels made in passing.

Decision: the end waits LEAVE_S for it, no longer. A disk that has stopped answering cannot be
made to; the thread is left behind as a daemon, what it wrote never gets its name, and whoever
waits hears why. Its unfinished files are swept away at the next start.
"""

import contextlib
import itertools
import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import Any, TypeVar

from engine.errors import MachineError

log = logging.getLogger(__name__)

READ, WRITE, END = range(3)
LEAVE_S = 5.0  # that the end may be held up by
STUCK = "The disk has not answered for {:.0f} seconds, so the memory of chats was left unsaved."
T = TypeVar("T")


class FileThread:
    """Runs jobs one by one, and says so after each; the thread begins with the first job."""

    def __init__(self, on_done: Callable[[], None]) -> None:
        self._on_done = on_done
        self._jobs: queue.PriorityQueue[tuple[int, int, Any, Any]] = queue.PriorityQueue()
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._open: dict[Future[Any], None] = {}
        self.thread: threading.Thread | None = None

    @property
    def is_idle(self) -> bool:
        """Return whether every job is done."""
        return not self._open

    def read(self, job: Callable[[], T]) -> "Future[T]":
        """Do a job that somebody waits for; what it raises is the future's."""
        return self._add(READ, job)

    def write(self, job: Callable[[], T]) -> "Future[T]":
        """Do a job when nobody waits to read."""
        return self._add(WRITE, job)

    def wait_idle(self, timeout: float | None = None) -> bool:
        """Wait until every job is done; return False after `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self.is_idle, timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Do what is left and join the thread; False if that took over `timeout` s (LEAVE_S).

        What was left then ends in MachineError, and the thread is on its own.
        """
        with self._changed:
            thread, self.thread = self.thread, None
        if thread is None:
            return True
        limit_s = LEAVE_S if timeout is None else timeout
        until = time.monotonic() + limit_s
        self._jobs.put((END, next(self._order), None, None))
        thread.join(max(0.0, until - time.monotonic()))
        if thread.is_alive():
            self._leave_behind(STUCK.format(limit_s))
        return not thread.is_alive()

    def _leave_behind(self, words: str) -> None:
        """Answer every job that is not done, the one in progress too."""
        log.warning("%s", words)
        with contextlib.suppress(queue.Empty):
            while True:
                self._jobs.get_nowait()  # so that the thread, should it go on, does nothing more
        self._jobs.put((END, next(self._order), None, None))
        for done in list(self._open):
            _answer(done, error=MachineError(words))

    def _add(self, kind: int, job: Callable[[], T]) -> "Future[T]":
        done: Future[T] = Future()
        with self._changed:
            self._open[done] = None
            self._jobs.put((kind, next(self._order), job, done))
            if self.thread is None:
                self.thread = threading.Thread(target=self._run, name="saved memory", daemon=True)
                self.thread.start()
        return done

    def _run(self) -> None:
        while True:
            kind, _, job, done = self._jobs.get()
            if kind == END:
                return
            try:
                result = job()
            except BaseException as error:
                _answer(done, error=error)
            else:
                _answer(done, result)
            with self._changed:
                del self._open[done]
                self._changed.notify_all()
            self._on_done()


def _answer(done: "Future[Any]", result: Any = None, error: BaseException | None = None) -> None:
    """Answer a job, unless it was given up."""
    with contextlib.suppress(InvalidStateError):
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)
