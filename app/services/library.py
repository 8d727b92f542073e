"""The models on this machine as a list that fills in the background, with words for each."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.library.models import FoundModel, described, scan
from app.library.places import places
from app.services.jobs import Jobs


class Library(QObject):
    """Finds models and reads their headers on the pool.

    Attributes:
        models: what the last scan found; `facts` of each follow one by one.
        is_scanning: a scan runs now.

    Signals:
        changed(): the list or the facts of a model are other ones.
    """

    changed = Signal()

    def __init__(self, jobs: Jobs, models_folder: Path) -> None:
        super().__init__()
        self.models: list[FoundModel] = []
        self.is_scanning = False
        self._jobs = jobs
        self._folder = models_folder
        self._facts: dict[tuple[Path, float], FoundModel] = {}
        self._is_closed = False

    def rescan(self, added: Iterable[str] = ()) -> None:
        """Look again in all places, and in the folders the person added."""
        if self.is_scanning:
            return
        self.is_scanning = True
        where = places(self._folder, list(added))
        self._jobs.run(lambda: self._scan(where), self._on_scanned, self._on_failed)

    def close(self) -> None:
        """End a scan that runs."""
        self._is_closed = True

    def _scan(self, where: list[Any]) -> list[FoundModel]:
        """On the pool: list the files, then read each header that is not known yet."""
        found = scan(where, _piece_paths(), lambda: self._is_closed).models
        read = _read_facts()
        out = []
        for model in found:
            key = (model.path, model.modified)
            if key not in self._facts and not self._is_closed:
                self._facts[key] = described(model, read) if read else model
            out.append(self._facts.get(key, model))
        return out

    def _on_scanned(self, models: list[FoundModel]) -> None:
        self.is_scanning = False
        self.models = models
        self.changed.emit()

    def _on_failed(self, _error: Exception, _trace: str) -> None:
        self.is_scanning = False
        self.changed.emit()


def _piece_paths() -> Callable[[Path], list[Path]]:
    import engine

    found = getattr(engine, "piece_paths", None)
    return found if found is not None else lambda path: [path]


def _read_facts() -> Callable[[Path], Any] | None:
    import engine

    return getattr(engine, "read_model_info", None)
