"""The one thread that owns the model: load, work, sleep when idle, wake, until closed."""

import logging
import shutil
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from engine.errors import EngineError, InternalError
from engine.server.file_thread import FileThread
from engine.server.intake import Intake
from engine.server.known_places import KnownPlaces
from engine.server.loaded import Loaded
from engine.server.mailbox import Mailbox
from engine.server.metrics import Counters, Metrics, SlotStatus
from engine.server.prepare import prepare
from engine.server.queue import TaskQueue
from engine.server.saved_prompts import SavedPrompts
from engine.server.session import Session
from engine.server.settle import as_engine_error
from engine.server.slot import Slot
from engine.server.task import CLOSED, Task

log = logging.getLogger(__name__)

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Keeping:
    """What is kept beyond the slots: bytes in memory, a folder and bytes on the disk, and when
    the model leaves memory (seconds without a request, below 0: never)."""

    cache_bytes: int = 0
    folder: Path | None = None
    folder_bytes: int = 0
    sleep_idle_seconds: float = -1.0


class _ClosedWhileLoading(Exception):
    """Unwinds a load that nobody waits for any more."""


class EngineLoop:
    """Runs `load(progress)` and then every task on its own thread; `load` again after a sleep."""

    def __init__(
        self,
        load: Callable[[Progress], Loaded],
        n_slots: int,
        progress: Progress | None = None,
        keeping: Keeping | None = None,
    ) -> None:
        """Raises MachineError for a folder that cannot be made."""
        self._keeping = keeping or Keeping()
        self.queue = TaskQueue()
        self.error: EngineError | None = None
        self.is_ready = threading.Event()  # loaded, failed or closed: nothing to wait for
        self.is_asleep = False
        self.loaded: Loaded | None = None
        self.saved = SavedPrompts(self._keeping.folder, self._keeping.folder_bytes)
        self.known = KnownPlaces(self.saved)
        self._counters = Counters()
        self._slots: list[Slot] = []
        self._load = load
        self._n_slots = n_slots
        self._progress = progress
        self._session: Session | None = None
        self._bed: Path | None = None  # a temporary folder for what is known while asleep
        self._files = FileThread(self.queue.wake)
        self._intake = Intake(self._prepare, self.queue.post)
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------- any thread

    def post(self, task: Task) -> None:
        """Hand a task to the engine; one that comes too late is answered here."""
        if self.queue.is_closed or not self._intake.post(task):
            task.refuse(self.error or InternalError(CLOSED))

    def hear(self, mailbox: Mailbox) -> None:
        """Look at the wishes left in a mailbox as soon as possible."""
        self.queue.wake()
        if (session := self._session) is not None:
            session.scheduler.interrupt(mailbox)

    def slots(self) -> list[SlotStatus]:
        """Return the state of every slot at once, also during a decode."""
        session = self._session
        sizes = {} if session is None else session.slot_bytes()
        return [slot.status(sizes.get(slot.id, 0)) for slot in self._slots]

    def metrics(self) -> Metrics:
        """Return the counters at once, also during a decode."""
        n_waiting = self._intake.n_waiting + self.queue.n_deferred
        n_processing = sum(not slot.is_idle for slot in self._slots)
        held = session.cache if (session := self._session) is not None else None
        return replace(
            self._counters.metrics(n_processing, n_waiting),
            prompts_held=len(held.parked) if held else 0,
            prompts_held_bytes=held.n_bytes_held if held else 0,
            prompts_saved=self.saved.n_files,
            prompts_saved_bytes=self.saved.n_bytes,
        )

    def close(self) -> None:
        """End every request as cancelled, free the model, join the threads."""
        self.queue.close()
        if threading.current_thread() in (self._thread, self._intake.thread, self._files.thread):
            return  # a listener closes: the thread cannot wait for itself
        if (session := self._session) is not None:
            session.scheduler.interrupt()
        self._thread.join()

    # ------------------------------------------------------------- intake thread

    def _prepare(self, task: Task) -> None:
        if self.error is not None:
            raise self.error
        if self.loaded is not None:
            prepare(task, self.loaded, self._n_slots)

    def _end_task(self, task: Task) -> None:
        """Answer what will never run."""
        error = task.error or self.error
        if error is not None:
            task.refuse(error)
        else:
            task.cancel()

    # ------------------------------------------------------------- engine thread

    def _run(self) -> None:
        try:
            self._load_model()
            if self.loaded is not None:
                self.known.find_files(self.loaded.context)
            while self.loaded is not None and not self.queue.is_closed:
                self._work(self.loaded)
                if not self.queue.is_closed:
                    self._sleep()
        finally:
            self._end()

    def _load_model(self) -> None:
        """Load the model, or note why it cannot be."""
        loaded = None
        try:
            loaded = self._load(self._report)
        except _ClosedWhileLoading:
            log.info("closed while loading")
        except Exception as error:
            log.info("the model could not be loaded", exc_info=error)
            self.error = as_engine_error(error)
        self.loaded = loaded
        if self.loaded is not None and not self._slots:
            n_ctx = self.loaded.n_ctx_slot
            self._slots = [Slot(i, n_ctx) for i in range(self._n_slots)]

    def _go_on_unless_closed(self, stage: str, done: float) -> None:
        if self.queue.is_closed:
            raise _ClosedWhileLoading

    def _report(self, stage: str, done: float) -> None:
        self._go_on_unless_closed(stage, done)
        if self._progress is not None:
            self._progress(stage, done)

    def _work(self, loaded: Loaded) -> None:
        """Work until closed or asleep; then the model has left memory."""
        session = Session(
            loaded,
            self._slots,
            self.queue,
            self.known,
            self._files,
            self._counters,
            self._keeping.cache_bytes,
        )
        self._session = session
        self.is_ready.set()
        self._intake.open()
        self._files.write(lambda: loaded.prepare_rest(self._go_on_unless_closed))
        try:
            with loaded.adopted():
                while not self.queue.is_closed:
                    session.run(self._keeping.sleep_idle_seconds)
                    if self.queue.is_closed or session.leave_memory(self._make_bed()):
                        break
        finally:
            session.end()
            self._session = None
            loaded.close()

    def _make_bed(self) -> Path | None:
        """Return the folder for what is known while asleep; None if there is no room for one."""
        if self.saved.folder is not None:
            return self.saved.folder
        if self._bed is None:
            try:
                self._bed = Path(tempfile.mkdtemp(prefix="inglenook-"))
            except OSError:
                log.warning("conversations are read again after the sleep", exc_info=True)
        return self._bed

    def _sleep(self) -> None:
        """Wait for the next task, then load the model again."""
        self.is_asleep = True
        log.info("the model has left memory until the next request")
        self.queue.wait_posted()
        if not self.queue.is_closed:
            self._load_model()
        self.is_asleep = False

    def _end(self) -> None:
        self.queue.close()
        self.is_ready.set()
        self._intake.close()
        self._files.close()
        waiting = (*self.queue.take(wait=False), *self.queue.drop_deferred(lambda _: True))
        for task in (*waiting, *self._intake.left):
            self._end_task(task)
        if self._bed is not None:
            shutil.rmtree(self._bed, ignore_errors=True)
