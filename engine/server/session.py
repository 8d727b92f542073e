"""Session: the engine thread with a loaded model, from the first task to sleep or the end."""

import logging
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from engine.errors import EngineError, RequestError
from engine.server.admission import find_slot
from engine.server.embedder import Embedder
from engine.server.embedding import Texts
from engine.server.events import Finished
from engine.server.file_thread import LEAVE_S, FileThread
from engine.server.keeper import Keeper
from engine.server.known_places import KnownPlaces
from engine.server.loaded import Loaded
from engine.server.metrics import Counters
from engine.server.prompt_cache import PromptCache, saved_row
from engine.server.queue import TaskQueue
from engine.server.rerank import Judgement
from engine.server.scheduler import MIXED_TOKENS, Scheduler
from engine.server.settle import as_engine_error
from engine.server.slot import Slot
from engine.server.slot_files import SlotFile
from engine.server.task import Task, TaskKind

log = logging.getLogger(__name__)

_OF_FILES = (TaskKind.KEEP, TaskKind.EXPORT, TaskKind.IMPORT)


class Session:
    """Takes tasks from the queue and moves the slots. Engine thread only."""

    def __init__(
        self,
        loaded: Loaded,
        slots: Sequence[Slot],
        queue: TaskQueue,
        known: KnownPlaces,
        files: FileThread,
        counters: Counters,
        cache_bytes: int,
    ) -> None:
        self._loaded = loaded
        self._context = loaded.context
        self._slots = slots
        self._queue = queue
        self._files = files
        self._known = known
        known.attach(loaded.context, slots)
        self.cache = PromptCache(known, files, loaded.context, cache_bytes)
        self._keeper = Keeper(known, files, loaded.context, loaded.forks[0])
        self.scheduler = Scheduler(
            loaded, slots, self.cache, counters, lambda slot: queue.put_forward(slot.id)
        )
        self._embedder = Embedder(loaded.context, self.cache.make_room)
        self.cache.last_resort = self._embedder.give_way

    def slot_bytes(self) -> dict[int, int]:
        """Return the bytes of K and V of each slot; any thread may ask, also during a decode."""
        memory = self._context.memory
        return {slot.id: memory.count_bytes(slot.id) for slot in self.scheduler.slots}

    # ------------------------------------------------------------- the loop

    def run(self, sleep_after_s: float) -> None:
        """Work until the queue is closed, or nothing was asked for so long (below 0: never)."""
        is_moving, was_busy, idle_since = True, False, time.monotonic()
        is_proven = False  # that the books of the memory agree, since anything was done
        while not self._queue.is_closed:
            is_busy = self.scheduler.is_busy or self._embedder.is_busy
            if not is_busy and not is_proven:
                self._check_integrity()
            is_proven = not is_busy
            if was_busy or is_busy:
                idle_since = time.monotonic()
            was_busy = is_busy
            left_s = None
            if sleep_after_s >= 0 and not is_busy:
                left_s = idle_since + sleep_after_s - time.monotonic()
                if left_s <= 0 and not self._queue.has_posted:
                    return
            for task in self._queue.take(not is_busy or not is_moving, left_s):
                self._take(task)
                idle_since, is_proven = time.monotonic(), False
            for task in self._queue.drop_deferred(lambda task: task.is_given_up):
                task.cancel()
            is_moving = self._move()

    def _move(self) -> bool:
        """Do one step of what runs; return whether the next one can follow at once."""
        is_alone = not self.scheduler.is_busy
        n_most = self._loaded.n_batch if is_alone else min(self._loaded.n_batch, MIXED_TOKENS)
        has_read = self._embedder.step(n_most, is_alone=is_alone)
        if not self.scheduler.is_busy or self._queue.is_closed:
            return has_read or self._embedder.is_busy
        try:
            return self.scheduler.step() or has_read
        except Exception as error:
            log.exception("a step failed")
            self.scheduler.fail_all(as_engine_error(error))
            return True

    def _check_integrity(self) -> None:
        """Prove the books of the memory while nothing runs; broken ones are begun anew."""
        try:
            self._context.memory.check_integrity()
        except Exception:  # broken books may break whoever reads them
            log.exception("the memory contradicts itself; all of it is forgotten")
            if self._files.wait_idle(LEAVE_S):  # nobody writes its pages to a file any more
                self.cache.begin_anew()

    # ------------------------------------------------------------- tasks

    def _take(self, task: Task) -> None:
        """Launch a task, defer it, or answer it with its error."""
        try:
            if task.is_given_up:
                task.cancel()
            elif task.error is not None:
                task.refuse(task.error)
            elif task.kind.takes_slot:
                self._launch(task)
            elif task.kind is TaskKind.EMBEDDING:
                self._embedder.add(task)
            elif task.kind is TaskKind.RERANK:
                self._rank(task)
            elif task.kind in _OF_FILES:
                _pass_on(self._begin_keeping(task), task.reply)
            else:
                self._take_slot_task(task)
        except Exception as error:
            if not isinstance(error, EngineError):
                log.exception("task %d failed", task.id)
            task.refuse(as_engine_error(error))

    def _launch(self, task: Task) -> None:
        if not task.tokens:
            if task.kind is TaskKind.DECISION:
                raise RequestError("A decision needs a prompt.")
            for index in range(task.request.n):
                task.mailbox.deliver(Finished("", "limit", index=index))
            return
        first = find_slot(self._slots, task.request.id_slot, task.tokens)
        idle = [slot for slot in self._slots if slot.is_idle and slot is not first]
        if first is None or len(idle) < task.request.n - 1:
            self._queue.defer(task)
            return
        idle.sort(key=lambda slot: (bool(slot.tokens), slot.last_used_at))
        self.scheduler.launch(task, [first, *idle[: task.request.n - 1]])

    def _rank(self, task: Task) -> None:
        if isinstance(task.subject, Texts):
            self._embedder.add(task)
        else:
            Judgement(task, task.subject, self._take).start(len(self._slots))

    def _begin_keeping(self, task: Task) -> "Future[SlotFile]":
        if task.kind is TaskKind.IMPORT:
            return self._keeper.adopt(Path(task.subject), Path(task.path))
        assert task.tokens is not None
        is_export = task.kind is TaskKind.EXPORT
        return self._keeper.keep(task.tokens, Path(task.path), is_export=is_export)

    def _take_slot_task(self, task: Task) -> None:
        if not 0 <= task.id_slot < len(self._slots):
            raise RequestError(f"There is no slot {task.id_slot}.")
        slot = self._slots[task.id_slot]
        if task.kind is TaskKind.SLOT_RESTORE and task.subject is None:
            self._begin_reading(task)
        elif not slot.is_idle:
            self._queue.defer(task)
        elif task.kind is TaskKind.SLOT_SAVE:
            _pass_on(self._keeper.save_slot(slot, Path(task.path)), task.reply)
        elif task.kind is TaskKind.SLOT_RESTORE:
            task.reply.set_result(self._restore(task, slot))
        else:
            n_tokens = len(slot.tokens)
            self.cache.forget(slot)
            task.reply.set_result(SlotFile(slot.id, "", n_tokens, 0.0))

    def _begin_reading(self, task: Task) -> None:
        """Let the file thread read for a task, which comes back when that is done."""
        task.subject = self._files.read(lambda: self._context.read_saved(task.path))

        def come_back(_: Any) -> None:
            if not self._queue.post(task):
                task.cancel()

        task.subject.add_done_callback(come_back)

    def _restore(self, task: Task, slot: Slot) -> SlotFile:
        """Let a slot remember what was read; what it knew before stays where it can."""
        started_at = time.monotonic()
        saved = task.subject.result()
        self.cache.hold(slot)
        slot.tokens, slot.prompt_row = self.cache.restore(saved, slot), saved_row(saved)
        slot.last_used_at = time.monotonic()
        self._known.note(slot)
        elapsed_ms = (slot.last_used_at - started_at) * 1000
        return SlotFile(slot.id, task.path, len(slot.tokens), elapsed_ms)

    # ------------------------------------------------------------- the end

    def leave_memory(self, folder: Path | None) -> bool:
        """Write what memory knows to files; False if a task came meanwhile, and all is as before.

        Afterwards the model may be closed. Without a folder nothing is written.
        """
        if folder and not self._keeper.write_all(folder, lambda: self._queue.has_posted):
            return False
        self.end()
        return True

    def end(self) -> None:
        """End every answer as cancelled; nothing is in memory any more."""
        self.scheduler.end_all()
        self._embedder.end()
        self.cache.close()
        self._known.detach()
        for slot in self._slots:
            slot.truncate(0)


def _pass_on(done: "Future[SlotFile]", reply: "Future[SlotFile]") -> None:
    """Answer with what a job on the file thread ends in."""

    def answer(job: "Future[SlotFile]") -> None:
        if (error := job.exception()) is not None:
            reply.set_exception(as_engine_error(error))
        else:
            reply.set_result(job.result())

    done.add_done_callback(answer)
