"""Walks a folder for .gguf files within limits, so that no disk and no loop can hold it up."""

import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_DEPTH = 8  # Jan and Hugging Face need five
MAX_ENTRIES = 100_000
MAX_SECONDS = 10.0
_SKIPPED = frozenset({".git", ".venv", "node_modules", "__pycache__", "$recycle.bin", ".trash"})


@dataclass(frozen=True)
class FoundFile:
    """A file, its size and what tells whether two paths are the same file."""

    path: Path
    n_bytes: int
    modified: float
    identity: tuple[int, int] | str


class Limits:
    """What one scan may still spend; `is_spent` when it was cut off."""

    def __init__(self, cancelled: Callable[[], bool] | None = None) -> None:
        self.is_spent = False
        self._cancelled = cancelled
        self._entries = MAX_ENTRIES
        self._until = time.monotonic() + MAX_SECONDS

    def take(self) -> bool:
        """Count one directory entry; False when it is time to stop."""
        self._entries -= 1
        late = self._entries < 0 or time.monotonic() > self._until
        if late or (self._cancelled is not None and self._cancelled()):
            self.is_spent = True
        return not self.is_spent


def gguf_files(root: Path, limits: Limits) -> Iterator[FoundFile]:
    """Yield the .gguf files below `root`; folders that cannot be read are passed over.

    Links are followed, each folder is entered once.
    """
    waiting = [(root, 0)]
    entered: set[tuple[int, int] | str] = set()
    while waiting and not limits.is_spent:
        folder, depth = waiting.pop()
        try:
            identity = identity_of(folder, folder.stat())
            if identity in entered:
                continue
            entered.add(identity)
            listing = os.scandir(folder)
        except (OSError, ValueError):
            continue
        with listing:
            for entry in _entries(listing, limits):
                if entry.name.lower().endswith(".gguf"):
                    found = found_file(Path(entry.path))
                    if found is not None:
                        yield found
                        continue
                if depth < MAX_DEPTH and _is_folder(entry):
                    waiting.append((Path(entry.path), depth + 1))


def found_file(path: Path) -> FoundFile | None:
    """Return a regular, non-empty file, or None."""
    try:
        about = path.stat()
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(about.st_mode) or not about.st_size:
        return None
    return FoundFile(path, about.st_size, about.st_mtime, identity_of(path, about))


def identity_of(path: Path, about: os.stat_result) -> tuple[int, int] | str:
    """Return what is equal for two paths of one file (some network drives number no files)."""
    return (about.st_dev, about.st_ino) if about.st_ino else os.path.realpath(path)


def _entries(listing: Iterator[os.DirEntry[str]], limits: Limits) -> Iterator[os.DirEntry[str]]:
    while limits.take():
        try:
            yield next(listing)
        except (StopIteration, OSError):
            return


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir() and entry.name.lower() not in _SKIPPED
    except OSError:
        return False
