"""Owns the one EngineClient: opens and closes models beside the window, reports in words."""

import hashlib
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.services.jobs import Jobs
from app.services.model_words import display_name
from app.services.sampling import used
from app.strings import tr

Client = Any
MakeClient = Callable[..., Client]
_SAMPLE = 64 * 1024  # bytes of both ends of a file that tell it from others
# What the engine reports while it loads: in words, and its share of the whole, 0 to 1.
STAGES = {
    "map": ("Opening the file", 0.0, 0.05),
    "compile kernels": ("Compiling for this processor, only this once", 0.05, 0.85),
    "read": ("Reading the weights", 0.85, 0.9),
    "vocabulary": ("Reading the vocabulary", 0.9, 0.95),
    "context": ("Making room for the conversation", 0.95, 1.0),
}


@dataclass(frozen=True)
class Refusal:
    """A model that was not opened while another stays loaded: its file, why, the traceback."""

    name: str
    sentence: str
    details: str


class EngineService(QObject):
    """The model in memory, if any.

    Attributes:
        state: "empty", "loading", "ready" or "failed".
        path: the model file that is open or was asked for, or None.
        client: the EngineClient while loading or ready, else None.
        name: what to call the model.
        error, details: the sentence and the traceback of the last failed load.
        refusal: the last model that could not take the place of the present one, or None.
        stage, done: how far a load is, in words and 0 to 1.
        n_ctx: tokens that one conversation may hold; 0 while no model says.
        mark: what tells the model file that is ready from others; "" while none is.
        options: what the model was opened with, besides its path.
        own_sampling: values of SamplingParams that the open model's file recommends.
        standing: returns what every model is opened with, besides the options of `load`.
        farewell: called with a client that will end; returns what is done on the pool before.

    Signals:
        changed(): state, path or error is another one.
        progressed(): stage or done moved.
        opened(): a client is there and takes requests, though the model may still load.
    """

    changed = Signal()
    progressed = Signal()
    opened = Signal()

    def __init__(
        self,
        jobs: Jobs,
        make_client: MakeClient | None = None,
        check: Callable[[Path], Any] | None = None,
    ) -> None:
        """`check` reads a file's header and raises when it cannot be run; for another client
        than the engine's there is none unless given.
        """
        super().__init__()
        self.state = "empty"
        self.path: Path | None = None
        self.client: Client = None
        self.name = ""
        self.error = ""
        self.details = ""
        self.refusal: Refusal | None = None
        self.stage = ""
        self.done = 0.0
        self.n_ctx = 0
        self.mark = ""
        self.options: dict[str, Any] = {}
        self.own_sampling: dict[str, Any] = {}
        self.standing: Callable[[], dict[str, Any]] = dict
        self.farewell: Callable[[Client], Callable[[], None]] = lambda _: _nothing
        self._jobs = jobs
        self._check = check or (_check_header if make_client is None else None)
        self._make_client = make_client or _engine_client
        self._load_id = 0
        self._made: list[Client] = []  # appended on the pool, so that close() misses none
        self._steps: deque[tuple[str, float]] = deque(maxlen=64)
        self._timer = QTimer(self)
        self._timer.setInterval(33)
        self._timer.timeout.connect(self._drain)

    def load(self, path: Path, **options: Any) -> None:
        """Open another model in place of the present one; returns at once.

        A file that cannot be run leaves the present one where it is. `options` are keyword
        arguments of EngineClient (n_slots, n_ctx, n_threads, …).
        """
        self._load_id += 1
        load_id, check, path = self._load_id, self._check, Path(path)
        self.refusal = None
        if self.state != "ready" or check is None:
            self._begin(load_id, path, options)
            return
        self._jobs.run(
            lambda: check(path),
            lambda _: self._begin(load_id, path, options),
            lambda error, trace: self._refuse(load_id, path, error, trace),
        )

    def _begin(self, load_id: int, path: Path, options: dict[str, Any]) -> None:
        if load_id != self._load_id:
            return
        options = {**self.standing(), **options}
        leave = self._leave()
        self.path, self.name = path, display_name(path)
        self.error = self.details = self.stage = ""
        self.done, self.n_ctx, self.mark = 0.0, 0, ""
        self.options, self.own_sampling = options, {}
        self._steps.clear()
        self._set_state("loading")
        self._timer.start()
        self._jobs.run(
            lambda: self._open(load_id, path, leave, options),
            lambda made: self._on_ready(load_id, *made),
            lambda error, trace: self._on_failed(load_id, error, trace),
        )

    def _refuse(self, load_id: int, path: Path, error: Exception, trace: str) -> None:
        if load_id == self._load_id:
            self.refusal = Refusal(path.name, sentence(error), trace)
            self.changed.emit()

    def dismiss_refusal(self) -> None:
        """Forget the model that could not be opened."""
        self.refusal = None
        self.changed.emit()

    def unload(self) -> None:
        """Take the model out of memory, or end a load that runs."""
        self._load_id += 1
        leave = self._leave()
        self.path, self.name, self.refusal = None, "", None
        self.n_ctx, self.mark, self.own_sampling = 0, "", {}
        self._timer.stop()
        self._set_state("empty")
        self._jobs.run(leave, lambda _: None)

    def close(self) -> None:
        """End the engine thread and any load; called once, when the window is gone."""
        self._load_id += 1
        self._timer.stop()
        self._leave()()
        for client in list(self._made):
            client.close()

    def _leave(self) -> Callable[[], None]:
        """Let the present client go; return what ends it, on any thread."""
        client, self.client = self.client, None
        if client is None:
            return _nothing
        keep = self.farewell(client) if self.state == "ready" else _nothing

        def leave() -> None:
            keep()
            client.close()

        return leave

    def is_available(self) -> bool:
        """Tell whether a request would be answered, now or after the load."""
        return self.state in ("loading", "ready")

    def file_name(self) -> str:
        """Return the name of the file that is open or was asked for, "" without one."""
        return self.path.name if self.path is not None else ""

    def context(self) -> dict[str, Any]:
        """Return every value of ContextParams that the model was opened with."""
        return used({}, self.options)["context"] | ({"n_ctx": self.n_ctx} if self.n_ctx else {})

    def n_tokens(self, text: str) -> int | None:
        """Return how many tokens a text has, or None while no model can say."""
        if self.state != "ready" or not text:
            return None if text else 0
        return len(self.client.tokenize(text))

    # ------------------------------------------------------------ on the pool

    def _open(
        self, load_id: int, path: Path, leave: Callable[[], None], options: dict[str, Any]
    ) -> tuple[Client, str]:
        leave()
        if load_id != self._load_id:
            return None, ""
        client = self._make_client(path, progress=self._on_progress, **options)
        self._made = [*self._made[-3:], client]
        if load_id != self._load_id:
            client.close()
            return None, ""
        self._jobs.post(lambda: self._on_opened(load_id, client))
        while not client.wait_until_ready(0.2):
            if load_id != self._load_id:
                return None, ""
        return client, file_mark(path)

    def _on_progress(self, stage: str, done: float) -> None:
        """Called on the engine thread."""
        self._steps.append((stage, done))

    # ------------------------------------------------------------ on the GUI thread

    def _drain(self) -> None:
        if self._steps:
            stage, done = self._steps[-1]
            self._steps.clear()
            words, start, end = STAGES.get(stage, (stage, self.done, self.done))
            self.stage = tr(words)
            self.done = max(self.done, start + (end - start) * done)
            self.progressed.emit()

    def _on_opened(self, load_id: int, client: Client) -> None:
        if load_id != self._load_id:
            self._jobs.run(client.close, lambda _: None)
            return
        self.client = client
        self.own_sampling = dict(getattr(getattr(client, "info", None), "sampling", None) or {})
        self.opened.emit()

    def _on_ready(self, load_id: int, client: Client, mark: str) -> None:
        if load_id == self._load_id and client is not None:
            self._timer.stop()
            self.done, self.mark = 1.0, mark
            slots = client.slots()
            self.n_ctx = slots[0].n_ctx if slots else 0
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


def file_mark(path: Path) -> str:
    """Return 16 hex digits that tell a model file from others, wherever it lies."""
    mark = hashlib.sha256(path.name.encode("utf-8", "surrogatepass"))
    try:
        with open(path, "rb") as file:
            head = file.read(_SAMPLE)
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _SAMPLE))
            mark = hashlib.sha256(head + size.to_bytes(8, "little") + file.read(_SAMPLE))
    except OSError:
        pass  # the name has to do
    return mark.hexdigest()[:16]


def _nothing() -> None:
    """Do nothing: there is no model to leave."""


def _check_header(path: Path) -> Any:
    import engine

    return engine.read_model_info(path)


def _engine_client(path: Path, **options: Any) -> Client:
    import engine

    return engine.EngineClient(path, **options)  # type: ignore[attr-defined]
