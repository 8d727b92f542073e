"""Slow work on a small pool of threads, its result delivered on the GUI thread."""

import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal

Done = Callable[[Any], Any]
Failed = Callable[[Exception, str], None]


class Jobs(QObject):
    """Runs functions beside the window; call `close` before the program ends.

    Signals:
        failed(str): the traceback of a job that nobody caught.
    """

    failed = Signal(str)
    _landed = Signal(object)

    def __init__(self, n_threads: int = 3) -> None:
        super().__init__()
        self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix="job")
        self._is_closed = False
        self._landed.connect(self._land, Qt.ConnectionType.QueuedConnection)

    def run(self, work: Callable[[], Any], done: Done, failed: Failed | None = None) -> None:
        """Call `work()` on the pool, then `done(result)` or `failed(error, traceback)` here."""
        if not self._is_closed:
            self._pool.submit(self._work, work, done, failed)

    def post(self, call: Callable[[], Any]) -> None:
        """Call a function on the GUI thread soon; safe from any thread."""
        if not self._is_closed:
            self._landed.emit(call)

    def close(self) -> None:
        """Drop what has not started and wait for what runs; results no longer arrive."""
        self._is_closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _land(self, call: Callable[[], Any]) -> None:
        if not self._is_closed:
            call()

    def _work(self, work: Callable[[], Any], done: Done, failed: Failed | None) -> None:
        try:
            result = work()
        except Exception as error:  # any error of a job belongs to whoever asked for it
            trace = traceback.format_exc()
            caught = error
            if failed is None:
                self.post(lambda: self.failed.emit(trace))
            else:
                self.post(lambda: failed(caught, trace))
        else:
            self.post(lambda: done(result))
