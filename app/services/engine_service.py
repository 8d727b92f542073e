"""Owns the one EngineClient: opens and closes models beside the window, reports in words."""

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.services.jobs import Jobs
from app.services.model_words import display_name
from app.strings import tr

Client = Any
MakeClient = Callable[..., Client]
STAGES = {
    "map": "Opening the file",
    "read": "Reading the file",
    "check": "Checking the file",
    "repack": "Arranging the weights",
    "kernels": "Preparing the kernels",
    "compile": "Compiling the kernels",
    "plan": "Planning the work",
    "warm up": "Warming up",
    "warm": "Warming up",
}


class EngineService(QObject):
    """The model in memory, if any.

    Attributes:
        state: "empty", "loading", "ready" or "failed".
        path: the model file that is open or was asked for, or None.
        client: the EngineClient while loading or ready, else None.
        name: what to call the model.
        error, details: the sentence and the traceback of the last failed load.
        stage, done: how far a load is; `done` is 0 to 1.

    Signals:
        changed(): state, path or error is another one.
        progressed(): stage or done moved.
        opened(): a client is there and takes requests, though the model may still load.
    """

    changed = Signal()
    progressed = Signal()
    opened = Signal()

    def __init__(self, jobs: Jobs, make_client: MakeClient | None = None) -> None:
        super().__init__()
        self.state = "empty"
        self.path: Path | None = None
        self.client: Client = None
        self.name = ""
        self.error = ""
        self.details = ""
        self.stage = ""
        self.done = 0.0
        self._jobs = jobs
        self._make_client = make_client or _engine_client
        self._load_id = 0
        self._made: list[Client] = []  # appended on the pool, so that close() misses none
        self._steps: deque[tuple[str, float]] = deque(maxlen=64)
        self._timer = QTimer(self)
        self._timer.setInterval(33)
        self._timer.timeout.connect(self._drain)

    def load(self, path: Path, **options: Any) -> None:
        """Open another model in place of the present one; returns at once.

        `options` are keyword arguments of EngineClient (n_slots, n_ctx, n_threads, …).
        """
        self._load_id += 1
        load_id, previous = self._load_id, self.client
        self.client = None
        self.path, self.name = Path(path), Path(path).stem
        self.error = self.details = self.stage = ""
        self.done = 0.0
        self._steps.clear()
        self._set_state("loading")
        self._timer.start()
        self._jobs.run(
            lambda: self._open(load_id, Path(path), previous, options),
            lambda client: self._on_ready(load_id, client),
            lambda error, trace: self._on_failed(load_id, error, trace),
        )

    def unload(self) -> None:
        """Take the model out of memory, or end a load that runs."""
        self._load_id += 1
        client, self.client = self.client, None
        self.path, self.name = None, ""
        self._timer.stop()
        self._set_state("empty")
        if client is not None:
            self._jobs.run(client.close, lambda _: None)

    def close(self) -> None:
        """End the engine thread and any load; called once, when the window is gone."""
        self._load_id += 1
        self._timer.stop()
        self.client = None
        for client in list(self._made):
            client.close()

    def is_available(self) -> bool:
        """Tell whether a request would be answered, now or after the load."""
        return self.state in ("loading", "ready")

    def n_tokens(self, text: str) -> int | None:
        """Return how many tokens a text has, or None while no model can say."""
        if self.state != "ready" or not text:
            return None if text else 0
        return len(self.client.tokenize(text))

    @property
    def n_ctx(self) -> int:
        """Return how many tokens one conversation may hold; 0 while no model says."""
        slots = self.client.slots() if self.state == "ready" else ()
        return slots[0].n_ctx if slots else 0

    # ------------------------------------------------------------ on the pool

    def _open(self, load_id: int, path: Path, previous: Client, options: dict[str, Any]) -> Client:
        if previous is not None:
            previous.close()
        if load_id != self._load_id:
            return None
        client = self._make_client(path, progress=self._on_progress, **options)
        self._made = [*self._made[-3:], client]
        if load_id != self._load_id:
            client.close()
            return None
        self._jobs.post(lambda: self._on_opened(load_id, client))
        while not client.wait_until_ready(0.2):
            if load_id != self._load_id:
                return None
        return client

    def _on_progress(self, stage: str, done: float) -> None:
        """Called on the engine thread."""
        self._steps.append((stage, done))

    # ------------------------------------------------------------ on the GUI thread

    def _drain(self) -> None:
        if self._steps:
            stage, done = self._steps[-1]
            self._steps.clear()
            self.stage, self.done = tr(STAGES.get(stage, stage)), done
            self.progressed.emit()

    def _on_opened(self, load_id: int, client: Client) -> None:
        if load_id != self._load_id:
            self._jobs.run(client.close, lambda _: None)
            return
        self.client = client
        self.opened.emit()

    def _on_ready(self, load_id: int, client: Client) -> None:
        if load_id == self._load_id and client is not None:
            self._timer.stop()
            self.done = 1.0
            self.name = display_name(self.path, getattr(client, "info", None))
            self._set_state("ready")

    def _on_failed(self, load_id: int, error: Exception, trace: str) -> None:
        if load_id != self._load_id:
            return
        self._timer.stop()
        client, self.client = self.client, None
        if client is not None:
            self._jobs.run(client.close, lambda _: None)
        self.error, self.details = sentence(error), trace
        self._set_state("failed")

    def _set_state(self, state: str) -> None:
        self.state = state
        self.changed.emit()


def sentence(error: Exception) -> str:
    """Return an error as one sentence fit to show."""
    from app.errors import AppError
    from engine import EngineError

    if isinstance(error, (EngineError, AppError)):
        return str(error)
    if isinstance(error, MemoryError):
        return tr("There is not enough memory for this model; close programs or choose a smaller.")
    return tr("Something unexpected happened in the program ({kind}).", kind=type(error).__name__)


def _engine_client(path: Path, **options: Any) -> Client:
    import engine

    return engine.EngineClient(path, **options)  # type: ignore[attr-defined]
