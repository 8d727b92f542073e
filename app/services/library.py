"""The models on this machine as a list that fills in the background, with words for each."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.library.models import FoundModel, described, scan
from app.library.places import places
from app.services.jobs import Jobs
from app.strings import count, megabytes, tr


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


def words_for(facts: Any) -> list[str]:
    """Return what a header says, as short words: architecture, size, quantization, context."""
    if facts is None:
        return []
    words = [str(getattr(facts, "arch", "") or "")]
    n_params = getattr(facts, "n_params", 0) or 0
    if n_params:
        words.append(parameters(n_params))
    quant = main_quantization(facts)
    if quant:
        words.append(quant)
    n_ctx = getattr(facts, "n_ctx_train", 0) or 0
    if n_ctx:
        words.append(tr("{n} tokens of context", n=count(n_ctx)))
    return [word for word in words if word]


def parameters(n_params: int) -> str:
    """Return a number of parameters as people say it: 135M, 1.1B."""
    if n_params >= 1e9:
        return f"{n_params / 1e9:.1f}B".replace(".0B", "B")
    return f"{max(1, round(n_params / 1e6))}M"


def main_quantization(facts: Any) -> str:
    """Return the type that most tensors of a model have, floats aside."""
    kinds = dict(getattr(facts, "quantizations", None) or {})
    quantized = {kind: n for kind, n in kinds.items() if kind not in ("F32", "F16", "BF16")}
    chosen = quantized or kinds
    return max(chosen, key=lambda kind: chosen[kind]) if chosen else ""


def line_for(model: FoundModel) -> str:
    """Return the second line of a model in a list: what it is, how large, found where."""
    place = model.place.program or str(model.place.path)
    return " · ".join([*words_for(model.facts), megabytes(model.n_bytes), place])


def _piece_paths() -> Callable[[Path], list[Path]]:
    import engine

    found = getattr(engine, "piece_paths", None)
    return found if found is not None else lambda path: [path]


def _read_facts() -> Callable[[Path], Any] | None:
    import engine

    return getattr(engine, "read_model_info", None)
