"""The one thread that owns the model: load, then tasks and steps until closed.

Decision: prompts become token ids here, not in the caller's thread, so that `submit` costs nothing
in a window and works before the model is loaded; a caller who minds passes ids.
"""

import logging
import threading
from collections.abc import Callable

from engine.errors import ContextFullError, EngineError, InternalError, RequestError
from engine.server.admission import find_slot
from engine.server.events import Failed, Finished
from engine.server.loaded import Loaded
from engine.server.mailbox import Mailbox
from engine.server.metrics import Metrics, SlotStatus
from engine.server.queue import TaskQueue
from engine.server.scheduler import Scheduler
from engine.server.settle import as_engine_error
from engine.server.slot import Slot
from engine.server.slot_files import run_slot_task
from engine.server.task import Task, TaskKind

log = logging.getLogger(__name__)

Progress = Callable[[str, float], None]
CLOSED = "The engine is closed; open the model again."


class _ClosedWhileLoading(Exception):
    """Unwinds a load that nobody waits for any more."""


class EngineLoop:
    """Runs `load(progress)` and then every task on its own thread."""

    def __init__(
        self, load: Callable[[Progress], Loaded], n_slots: int, progress: Progress | None = None
    ) -> None:
        self.queue = TaskQueue()
        self.error: EngineError | None = None
        self.is_ready = threading.Event()  # loaded, failed or closed: nothing to wait for
        self.loaded: Loaded | None = None
        self._load = load
        self._n_slots = n_slots
        self._progress = progress
        self._scheduler: Scheduler | None = None
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------- any thread

    def post(self, task: Task) -> None:
        """Hand a task to the engine thread; one that comes too late is answered here."""
        if not self.queue.post(task):
            _refuse(task, self.error or InternalError(CLOSED))

    def hear(self, mailbox: Mailbox) -> None:
        """Look at the wishes left in a mailbox as soon as possible."""
        self.queue.wake()
        if self._scheduler is not None:
            self._scheduler.interrupt(mailbox)

    def slots(self) -> list[SlotStatus]:
        """Return the state of every slot at once, also during a decode."""
        return [slot.status() for slot in self._scheduler.slots] if self._scheduler else []

    def metrics(self) -> Metrics:
        """Return the counters at once, also during a decode."""
        n_waiting = self.queue.n_deferred
        if self._scheduler is None:
            return Metrics(requests_deferred=n_waiting)
        n_processing = sum(not slot.is_idle for slot in self._scheduler.slots)
        return self._scheduler.counters.metrics(n_processing, n_waiting)

    def close(self) -> None:
        """End every request as cancelled, free the model, join the thread."""
        self.queue.close()
        if threading.current_thread() is self._thread:
            return
        if self._scheduler is not None:
            self._scheduler.interrupt()
        self._thread.join()

    # ------------------------------------------------------------- engine thread

    def _run(self) -> None:
        try:
            self.loaded = self._load(self._report)
        except _ClosedWhileLoading:
            log.info("closed while loading")
        except Exception as error:
            log.info("the model could not be loaded", exc_info=error)
            self.error = as_engine_error(error)
        try:
            if self.loaded is not None:
                with self.loaded.adopted():
                    self._serve(self.loaded)
        finally:
            self.queue.close()
            self.is_ready.set()
            self._end_waiting()
            if self.loaded is not None:
                self.loaded.close()

    def _report(self, stage: str, done: float) -> None:
        if self.queue.is_closed:
            raise _ClosedWhileLoading
        if self._progress is not None:
            self._progress(stage, done)

    def _serve(self, loaded: Loaded) -> None:
        slots = [Slot(i, loaded.n_ctx_slot) for i in range(self._n_slots)]
        scheduler = Scheduler(loaded, slots, lambda slot: self.queue.put_forward(slot.id))
        self._scheduler = scheduler
        self.is_ready.set()
        try:
            while not self.queue.is_closed:
                for task in self.queue.take(wait=not scheduler.is_busy):
                    self._take(task, scheduler)
                for task in self.queue.drop_deferred(lambda task: task.is_given_up):
                    _cancel(task)
                if scheduler.is_busy and not self.queue.is_closed:
                    self._step(scheduler)
        finally:
            scheduler.end_all()

    def _step(self, scheduler: Scheduler) -> None:
        try:
            scheduler.step()
        except Exception as error:
            log.exception("a step failed")
            scheduler.fail_all(as_engine_error(error))

    def _take(self, task: Task, scheduler: Scheduler) -> None:
        """Launch a task, defer it, or answer it with its error."""
        try:
            if task.kind is not TaskKind.COMPLETION:
                self._take_slot_task(task, scheduler)
            elif task.is_given_up:
                _cancel(task)
            else:
                self._take_completion(task, scheduler)
        except Exception as error:
            if not isinstance(error, EngineError):
                log.exception("task %d failed", task.id)
            _refuse(task, as_engine_error(error))

    def _take_completion(self, task: Task, scheduler: Scheduler) -> None:
        loaded = self.loaded
        assert loaded is not None
        if task.tokens is None:
            task.tokens = _checked_prompt(loaded, task, len(scheduler.slots))
        if not task.tokens:
            for index in range(task.request.n):
                task.mailbox.deliver(Finished("", "limit", index=index))
            return
        first = find_slot(scheduler.slots, task.request.id_slot, task.tokens)
        idle = [slot for slot in scheduler.slots if slot.is_idle and slot is not first]
        if first is None or len(idle) < task.request.n - 1:
            self.queue.defer(task)
            return
        idle.sort(key=lambda slot: (bool(slot.tokens), slot.last_used_at))
        scheduler.launch(task, [first, *idle[: task.request.n - 1]])

    def _take_slot_task(self, task: Task, scheduler: Scheduler) -> None:
        if not 0 <= task.id_slot < len(scheduler.slots):
            raise RequestError(f"There is no slot {task.id_slot}.")
        slot = scheduler.slots[task.id_slot]
        if not slot.is_idle:
            self.queue.defer(task)
            return
        assert self.loaded is not None
        task.reply.set_result(run_slot_task(task, slot, self.loaded.context))

    def _end_waiting(self) -> None:
        """Answer what was posted or deferred and will never run."""
        for task in (*self.queue.take(wait=False), *self.queue.drop_deferred(lambda _: True)):
            if self.error is not None:
                _refuse(task, self.error)
            else:
                _cancel(task)


def _checked_prompt(loaded: Loaded, task: Task, n_slots: int) -> list[int]:
    """Return the prompt as token ids; raise RequestError or ContextFullError if it cannot run."""
    request = task.request
    if request.n > n_slots:
        raise RequestError(f"{request.n} answers at once need as many slots; there are {n_slots}.")
    tokens = loaded.encode(request.prompt)
    n_vocab = loaded.vocab.n_tokens
    if not all(0 <= token < n_vocab for token in tokens):
        raise RequestError(f"The prompt contains ids that are no tokens (0 to {n_vocab - 1}).")
    if len(tokens) >= loaded.n_ctx_slot:
        raise ContextFullError(
            f"The prompt has {len(tokens)} tokens and the context holds {loaded.n_ctx_slot}: "
            "shorten the prompt or open the model with a larger context."
        )
    return tokens


def _refuse(task: Task, error: EngineError) -> None:
    """Answer a task that never ran with an error."""
    if task.kind is not TaskKind.COMPLETION:
        task.reply.set_exception(error)
        return
    for index in range(task.request.n):
        task.mailbox.deliver(Failed(error.kind, str(error), index))


def _cancel(task: Task) -> None:
    """Answer a task that never ran as cancelled."""
    if task.kind is not TaskKind.COMPLETION:
        task.reply.set_exception(InternalError(CLOSED))
        return
    for index in range(task.request.n):
        task.mailbox.deliver(Finished("", "cancelled", index=index))
