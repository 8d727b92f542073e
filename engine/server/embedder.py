"""Embedder: texts on their way to vectors, a piece between the steps of the running answers.

Decision: what runs goes first. A text that takes the last free pages gives way when an answer
needs one, and is begun anew when nothing runs any more; if it does not fit then, it is refused.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from engine.errors import ContextFullError, MachineError
from engine.server.settle import as_engine_error
from engine.server.task import Task

log = logging.getLogger(__name__)


class Embedder:
    """The texts of tasks in order, one being read at a time. Engine thread only."""

    def __init__(self, context: Any, make_room: Callable[[], bool]) -> None:
        self._context = context
        self._make_room = make_room
        self._tasks: deque[tuple[Task, list[Any]]] = deque()  # with the vectors found so far
        self._run: Any = None
        self._is_reading = False
        self._has_given_way = False

    @property
    def is_busy(self) -> bool:
        """Return whether a text is to be read."""
        return bool(self._tasks)

    def add(self, task: Task) -> None:
        """Read the texts of a task after those that wait; its subject is `Texts`."""
        self._tasks.append((task, []))

    def step(self, n_most: int, *, is_alone: bool) -> bool:
        """Read at most n_most tokens of the first text; return whether anything moved.

        `is_alone` says that no answer runs.
        """
        if not self._tasks or (self._has_given_way and not is_alone):
            return False
        task, vectors = self._tasks[0]
        self._is_reading = True
        try:
            if self._read(task, vectors, n_most):
                task.reply.set_result(task.subject.finish(vectors))
                self._tasks.popleft()
        except (ContextFullError, MachineError) as error:
            if not self._make_room():
                self._end_first(error, is_alone=is_alone)
        except Exception as error:
            log.exception("task %d failed", task.id)
            self._drop_run()
            self._tasks.popleft()
            task.refuse(as_engine_error(error))
        finally:
            self._is_reading = False
        return True

    def _read(self, task: Task, vectors: list[Any], n_most: int) -> bool:
        """Read a piece; return whether all texts of the task are done."""
        texts = task.subject
        if len(vectors) < len(texts.tokens):
            if self._run is None:
                tokens = list(texts.tokens[len(vectors)])
                self._run = self._context.embedding(tokens, texts.pooling)
            if self._run.step(n_most):
                vectors.append(texts.vector(self._run.result()))
                self._drop_run()
        return len(vectors) == len(texts.tokens)

    def _end_first(self, error: ContextFullError | MachineError, *, is_alone: bool) -> None:
        """There is no room for the first text: refuse its task, or let it wait for the answers."""
        self._drop_run()
        if is_alone or not isinstance(error, ContextFullError):
            task, _ = self._tasks.popleft()
            task.refuse(error)
        else:
            self._has_given_way = True

    def give_way(self) -> bool:
        """Let go of the pages of a text that is half read; False if there is none."""
        if self._run is None or self._is_reading:
            return False
        log.info("a text that is being embedded gives way to the answers")
        self._drop_run()
        self._has_given_way = True
        return True

    def _drop_run(self) -> None:
        self._has_given_way = False
        if self._run is not None:
            self._run = None
            self._context.memory.forget_spare()

    def end(self) -> None:
        """Answer what is not done as cancelled."""
        self._drop_run()
        for task, _ in self._tasks:
            task.cancel()
        self._tasks.clear()
