"""FileThread: the one thread that writes and reads saved memory; reading goes first."""

import itertools
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

READ, WRITE, END = range(3)
T = TypeVar("T")


class FileThread:
    """Runs jobs one by one, and says so after each; the thread begins with the first job."""

    def __init__(self, on_done: Callable[[], None]) -> None:
        self._on_done = on_done
        self._jobs: queue.PriorityQueue[tuple[int, int, Any, Any]] = queue.PriorityQueue()
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._n_open = 0
        self.thread: threading.Thread | None = None

    @property
    def is_idle(self) -> bool:
        """Return whether every job is done."""
        return self._n_open == 0

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

    def close(self) -> None:
        """Do what is left and join the thread."""
        with self._changed:
            thread, self.thread = self.thread, None
        if thread is not None:
            self._jobs.put((END, next(self._order), None, None))
            thread.join()

    def _add(self, kind: int, job: Callable[[], T]) -> "Future[T]":
        done: Future[T] = Future()
        with self._changed:
            self._n_open += 1
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
                done.set_exception(error)
            else:
                done.set_result(result)
            with self._changed:
                self._n_open -= 1
                self._changed.notify_all()
            self._on_done()
