"""The window over a scripted engine, in folders of its own, for tests and benchmarks."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, QTimer
from PySide6.QtWidgets import QApplication

import engine
from app.main import make_services, open_window
from app.paths import find_paths
from app.services.everything import Services
from tests.make.models import smollm2


@dataclass(frozen=True)
class Parameter:
    """A row like those of the engine's table."""

    key: str
    default: Any
    min: float
    max: float
    step: float
    help: str = "What it does."


@dataclass(frozen=True)
class Sampler:
    """A stage of the chain like those of the engine's table."""

    name: str
    help: str
    parameters: tuple[Parameter, ...]


SAMPLERS = (
    Sampler(
        "penalties",
        "Makes words already used less likely",
        (
            Parameter("repeat_penalty", 1.0, 1, 1.5, 0.01),
            Parameter("repeat_last_n", 64, 0, 4096, 64),
        ),
    ),
    Sampler("top_k", "Keeps the k most likely tokens", (Parameter("top_k", 40, 0, 200, 1),)),
    Sampler(
        "temperature",
        "Lower is steadier, higher is bolder",
        (Parameter("temperature", 0.8, 0, 5, 0.05),),
    ),
)


class Clients:
    """Makes FakeClients with options of the test and remembers them."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.made: list[Any] = []
        self.asked: list[dict[str, Any]] = []

    def __call__(self, path: Path, progress: Any = None, **options: Any) -> Any:
        self.asked.append({"path": path, **options})
        kept = {key: options[key] for key in ("snapshot_dir",) if key in options}
        client = engine.FakeClient(path, progress=progress, **{**kept, **self.options})
        self.made.append(client)
        return client

    @property
    def last(self) -> Any:
        """Return the client made last."""
        return self.made[-1]


@contextmanager
def services(folder: Path, clients: Any) -> Iterator[Services]:
    """Open everything below a window in `folder`, and end it afterwards."""
    paths = find_paths(folder)
    paths.make()
    made = make_services(paths, clients)
    made.library.rescan = lambda added=(): None  # type: ignore[method-assign]
    try:
        yield made
    finally:
        made.close()


def starter_client(_path: Path, progress: Any = None, **options: Any) -> Any:
    """Open the starter model in the real engine, whatever was asked for."""
    return engine.EngineClient(smollm2(), progress=progress, n_slots=2, n_ctx=1024)


@contextmanager
def starter_services(folder: Path, qtbot: Any) -> Iterator[Services]:
    """Open everything below a window over the real engine, with the starter model ready."""
    with services(folder, starter_client) as made:
        made.engine.load(smollm2())
        qtbot.waitUntil(lambda: made.engine.state == "ready", timeout=60_000)
        yield made


@contextmanager
def window(folder: Path, clients: Any, model: str = "fake.gguf") -> Iterator[Any]:
    """Open a window in `folder` with a model on its way (none for ""), and end it afterwards."""
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    with services(folder, clients) as made:
        shown = open_window(application, made)
        shown.begin()
        if model:
            shown.load_model(folder / model)
        try:
            yield shown
        finally:
            shown._may_close = True
            shown.close()
            made.close()
            left = [t for t in shown.findChildren(QTimer) if t.isActive() and not t.isSingleShot()]
            shown.deleteLater()
            QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            assert not left, f"timers left running: {left}"
