"""EngineClient: one model on its own thread, asked from any thread, answering in events."""

import itertools
from collections.abc import Callable
from concurrent.futures import Future
from os import PathLike, fspath
from typing import Any

from engine.client.handle import CompletionHandle
from engine.client.loading import check_model, load_model
from engine.errors import InternalError
from engine.params import CompletionRequest, ContextParams
from engine.server.loaded import Loaded
from engine.server.loop import CLOSED, EngineLoop, Progress
from engine.server.mailbox import Mailbox
from engine.server.metrics import Metrics, SlotStatus
from engine.server.slot_files import SlotFile
from engine.server.task import Task, TaskKind


class EngineClient:
    """Opens a model and runs requests in up to `n_slots` slots at once.

    The constructor reads the file's header and raises ModelFileError or UnsupportedModelError at
    once; everything heavy happens on the engine thread. Requests submitted while it loads wait;
    if the load fails they end in Failed. Other options are those of ContextParams; `n_ctx` is
    what all slots share and what one conversation may take of it; with `context_shift` an answer
    that fills it goes on without its middle. Use as a context manager.
    """

    def __init__(
        self,
        model_path: str | PathLike[str],
        n_slots: int = 4,
        progress: Progress | None = None,
        *,
        n_gpu_layers: int = 0,
        context_shift: bool = False,
        **context_options: Any,
    ) -> None:
        params = ContextParams(**{**context_options, "n_seq_max": n_slots})
        self.model_path: str | None = fspath(model_path)
        self.info: Any = check_model(self.model_path)
        path = self.model_path

        def load(report: Progress) -> Loaded:
            return load_model(path, params, report, n_gpu_layers, context_shift)

        self._start(load, n_slots, progress)

    @classmethod
    def over(
        cls,
        load: Callable[[Progress], Loaded],
        n_slots: int = 4,
        progress: Progress | None = None,
    ) -> "EngineClient":
        """Return a client over anything that loads into the contracts of `engine.server.loaded`."""
        client = cls.__new__(cls)
        client.model_path, client.info = None, None
        client._start(load, n_slots, progress)
        return client

    def _start(
        self, load: Callable[[Progress], Loaded], n_slots: int, progress: Progress | None
    ) -> None:
        self._ids = itertools.count()
        self._loop = EngineLoop(load, n_slots, progress)

    def __enter__(self) -> "EngineClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------- state

    @property
    def state(self) -> str:
        """Return loading, ready, failed or closed."""
        if self._loop.error is not None:
            return "failed"
        if self._loop.queue.is_closed:
            return "closed"
        return "ready" if self._loop.is_ready.is_set() else "loading"

    def wait_until_ready(self, timeout: float | None = None) -> bool:
        """Wait for the load; return False after `timeout` seconds; raise the load error."""
        if not self._loop.is_ready.wait(timeout):
            return False
        if self._loop.error is not None:
            raise self._loop.error
        if self._loop.loaded is None:
            raise InternalError(CLOSED)
        return True

    def slots(self) -> list[SlotStatus]:
        """Return the state of every slot, at once, also during a decode; empty while loading."""
        return self._loop.slots()

    def metrics(self) -> Metrics:
        """Return counters and what runs and waits, at once, also during a decode."""
        return self._loop.metrics()

    # ------------------------------------------------------------- requests

    def submit(self, request: CompletionRequest) -> CompletionHandle:
        """Queue a request and return its handle; never waits.

        Everything that can go wrong with it arrives as a Failed event.
        """
        mailbox = Mailbox(request.n, request.on_event)
        task = Task(TaskKind.COMPLETION, next(self._ids), request.id_slot, request, mailbox)
        self._loop.post(task)
        return CompletionHandle(request, mailbox, lambda: self._loop.hear(mailbox), task.id)

    def tokenize(self, text: str) -> list[int]:
        """Return the token ids of a plain text, without a beginning token; waits for the load."""
        self.wait_until_ready()
        assert self._loop.loaded is not None
        return self._loop.loaded.tokenize(text)

    # ------------------------------------------------------------- slots

    def save_slot(self, id_slot: int, path: str | PathLike[str]) -> SlotFile:
        """Write what a slot remembers to a file; waits while the slot is busy.

        Raises RequestError, MachineError (disk) or InternalError.
        """
        return self._ask(TaskKind.SLOT_SAVE, id_slot, fspath(path))

    def restore_slot(self, id_slot: int, path: str | PathLike[str]) -> SlotFile:
        """Read a slot's memory from a file; waits while the slot is busy.

        Raises StateFileError, the slot's memory unchanged, when the file does not fit.
        """
        return self._ask(TaskKind.SLOT_RESTORE, id_slot, fspath(path))

    def erase_slot(self, id_slot: int) -> SlotFile:
        """Forget what a slot remembers; waits while the slot is busy."""
        return self._ask(TaskKind.SLOT_ERASE, id_slot, "")

    def _ask(self, kind: TaskKind, id_slot: int, path: str) -> SlotFile:
        reply: Future[SlotFile] = Future()
        self._loop.post(Task(kind, next(self._ids), id_slot, path=path, reply=reply))
        return reply.result()

    def close(self) -> None:
        """End every request as cancelled, free the model and join the thread."""
        self._loop.close()
