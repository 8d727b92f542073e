"""FoundModel: a model that is on this machine, and the scan of all places into one list."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from app.library.ollama import ollama_models
from app.library.places import Place
from app.library.walk import FoundFile, Limits, gguf_files
from app.strings import tr

# A projector belongs to a model and is none; GPT4All marks what it has not finished.
_NO_MODEL = re.compile(r"(^|[-_.])mmproj([-_.]|$)|^incomplete-", re.I)


@dataclass(frozen=True)
class FoundModel:
    """One model: `path` is what to open (the first piece of a split one), `paths` all its files.

    `problem` is a sentence why it cannot be used, or "". `facts` is what the function given to
    `described` returned for it, or None.
    """

    name: str
    path: Path
    place: Place
    n_bytes: int
    modified: float
    paths: tuple[Path, ...]
    problem: str = ""
    facts: Any = None


@dataclass(frozen=True)
class Scan:
    """What one scan found. `missing` are added folders that are not there now; `was_cut` says
    that a limit or the person ended the scan before its end.
    """

    models: list[FoundModel] = field(default_factory=list)
    missing: list[Place] = field(default_factory=list)
    was_cut: bool = False


def scan(
    places: Iterable[Place],
    piece_paths: Callable[[Path], list[Path]],
    cancelled: Callable[[], bool] | None = None,
) -> Scan:
    """Find the models in all places; a file that two places show is listed once.

    `piece_paths` gives all pieces of a file named like a piece of a split model, in order, else
    the file alone. `cancelled` is asked often; True ends the scan.
    """
    models: dict[object, FoundModel] = {}
    missing = []
    was_cut = False
    for place in places:
        if not _exists(place.path):
            missing += [place] if place.is_added else []
            continue
        limits = Limits(cancelled)
        for name, files, problem in _in_place(place, piece_paths, limits):
            first = files[0]
            known = models.setdefault(
                first.identity,
                FoundModel(
                    name=name,
                    path=first.path,
                    place=place,
                    n_bytes=sum(each.n_bytes for each in files),
                    modified=max(each.modified for each in files),
                    paths=tuple(each.path for each in files),
                    problem=problem,
                ),
            )
            if known.problem and not problem:
                models[first.identity] = replace(known, problem="")
        was_cut = was_cut or limits.is_spent
    return Scan(sorted(models.values(), key=lambda m: m.name.casefold()), missing, was_cut)


def described(model: FoundModel, read_facts: Callable[[Path], Any]) -> FoundModel:
    """Return the model with what `read_facts` says of its file, or with the reason it cannot.

    Whatever `read_facts` raises becomes the sentence in `problem`.
    """
    if model.problem:
        return model
    try:
        return replace(model, facts=read_facts(model.path))
    except Exception as error:
        return replace(model, problem=str(error) or type(error).__name__)


def _exists(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _in_place(
    place: Place, piece_paths: Callable[[Path], list[Path]], limits: Limits
) -> Iterator[tuple[str, list[FoundFile], str]]:
    if place.kind == "ollama":
        for name, blob in ollama_models(place.path, limits):
            yield name, [blob], ""
        return
    files = {
        found.path: found
        for found in gguf_files(place.path, limits)
        if not _NO_MODEL.search(found.path.stem)
    }
    taken: set[Path] = set()
    for path in sorted(files):
        if path in taken:
            continue
        pieces = piece_paths(path)
        taken.update(pieces)
        there = [files[piece] for piece in pieces if piece in files]
        yield _name(place, path, len(pieces) > 1), there, _missing(pieces, files)


def _missing(pieces: list[Path], files: dict[Path, FoundFile]) -> str:
    absent = [number for number, piece in enumerate(pieces, 1) if piece not in files]
    if not absent:
        return ""
    first = pieces[absent[0] - 1].name
    return tr(
        "Piece {number} of {n} of this model is missing: put “{name}” into the same folder.",
        number=absent[0],
        n=len(pieces),
        name=first,
    )


def _name(place: Place, path: Path, is_split: bool) -> str:
    """Return the name to show: the file's, or the folder's where all files are called alike."""
    stem = re.sub(r"-\d{5}-of-\d{5}$", "", path.stem) if is_split else path.stem
    if place.kind == "jan" and stem.lower() == "model" and path.parent != place.path:
        return path.parent.name
    return stem
