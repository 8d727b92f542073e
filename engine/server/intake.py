"""Intake: what is asked becomes token ids and samplers on a thread of its own, in order of arrival.

It answers nobody: what cannot be prepared is handed on with its error, so that every event of a
request comes from the engine thread.

Templates, tokenizers and grammars take their time, and some fail; neither may be felt by the
answers that are running.

Decision: one thread. A template is stopped after half a second, so the next request waits no
longer than that, and requests never overtake each other.
"""

import logging
import queue
import threading
from collections.abc import Callable

from engine.errors import EngineError
from engine.server.settle import as_engine_error
from engine.server.task import Task

log = logging.getLogger(__name__)


class Intake:
    """Prepares each task, then hands it on, with an error if it cannot be prepared."""

    def __init__(
        self,
        prepare: Callable[[Task], None],
        hand_on: Callable[[Task], bool],
    ) -> None:
        """`hand_on` says whether somebody will take the task; who closes answers what is `left`."""
        self._prepare = prepare
        self._hand_on = hand_on
        self.left: list[Task] = []
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._is_open = threading.Event()
        self._lock = threading.Lock()
        self._is_closed = False
        self._n_waiting = 0
        self.thread = threading.Thread(target=self._run, name="engine intake", daemon=True)
        self.thread.start()

    @property
    def n_waiting(self) -> int:
        """Return how many tasks are not handed on yet."""
        with self._lock:
            return self._n_waiting

    def post(self, task: Task) -> bool:
        """Add a task, from any thread; return False when nobody will take it any more."""
        with self._lock:
            if not self._is_closed:
                self._n_waiting += 1
                self._tasks.put(task)
            return not self._is_closed

    def open(self) -> None:
        """Begin: there is a model to prepare for, or the reason why not."""
        self._is_open.set()

    def close(self) -> None:
        """Hand the rest on as it is and join the thread."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._tasks.put(None)
        self._is_open.set()
        self.thread.join()

    def _run(self) -> None:
        self._is_open.wait()
        while (task := self._tasks.get()) is not None:
            error = self._try(task)
            task.error = error
            with self._lock:  # whoever hears the answer finds nothing waiting here
                if not self._hand_on(task):
                    self.left.append(task)
                self._n_waiting -= 1

    def _try(self, task: Task) -> EngineError | None:
        """Prepare a task that is still wanted; return what went wrong."""
        try:
            if not task.is_given_up and not self._is_closed:
                self._prepare(task)
        except Exception as error:
            if not isinstance(error, EngineError):
                log.exception("task %d could not be prepared", task.id)
            return as_engine_error(error)
        return None
