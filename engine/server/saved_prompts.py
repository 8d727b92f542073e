"""SavedPrompts: the files of saved conversations, found again at the next start."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from engine.errors import MachineError
from engine.memory import sweep_unfinished
from engine.server.places import OnDisk

log = logging.getLogger(__name__)

SUFFIX = ".safetensors"
MAX_FILES = 10_000  # of a folder that are looked at


class SavedPrompts:
    """The files of one folder, of at most `limit_bytes` together, and others kept elsewhere.

    The least recently used files of the folder go when there are too many; files elsewhere are
    the caller's. `skipped` says for each file that cannot be used why.
    """

    def __init__(self, folder: Path | None, limit_bytes: int) -> None:
        """Make the folder; raises MachineError if that cannot be."""
        self.folder = folder.absolute() if folder is not None else None
        self.skipped: dict[str, str] = {}
        self._limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self._files: dict[Path, OnDisk] = {}
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise MachineError(
                    f"The folder {folder} for saved conversations cannot be made "
                    f"({error.strerror or error}): choose another one."
                ) from error

    @property
    def n_files(self) -> int:
        """Return how many files are known."""
        return len(self._files)

    @property
    def n_bytes(self) -> int:
        """Return how many bytes the known files have."""
        with self._lock:
            return sum(file.n_bytes for file in self._files.values())

    def scan(self, peek: Callable[[Path], Sequence[int]]) -> Iterator[tuple[OnDisk, Sequence[int]]]:
        """Look at every file of the folder and yield the good ones with their tokens.

        `peek(path)` reads the tokens of a file's sequence or raises the reason why it cannot be
        used.
        """
        self.skipped.clear()
        if self.folder is not None:
            sweep_unfinished(self.folder)
        for path in self._listed():
            try:
                tokens = peek(path)
                size = path.stat()
            except Exception as error:
                self.skipped[path.name] = str(error)
                log.info("%s is skipped", path.name, exc_info=error)
                continue
            file = OnDisk(path, len(tokens), size.st_size, size.st_mtime)
            with self._lock:
                self._files[path] = file
            yield file, tokens

    def _listed(self) -> list[Path]:
        if self.folder is None:
            return []
        try:
            names = [name for name in os.listdir(self.folder) if name.endswith(SUFFIX)]
        except OSError as error:
            self.skipped[self.folder.name] = str(error)
            return []
        return [self.folder / name for name in sorted(names)[:MAX_FILES]]

    def find(self, path: Path) -> OnDisk | None:
        """Return a known file."""
        return self._files.get(path.absolute())

    def add(
        self, path: Path, n_tokens: int, checkpoints: tuple[int, ...] = ()
    ) -> tuple[OnDisk, list[OnDisk]]:
        """Note a file that was just written; return it, and those that were deleted for it."""
        path = path.absolute()
        file = OnDisk(path, n_tokens, path.stat().st_size, time.time(), checkpoints)
        with self._lock:
            self._files[path] = file
            excess = self._drop_oldest(file)
        for gone in excess:  # without the lock: a disk may take its time
            _delete(gone.path)
        return file, excess

    def _drop_oldest(self, kept: OnDisk) -> list[OnDisk]:
        own = [file for file in self._files.values() if file.path.parent == self.folder]
        excess = sum(file.n_bytes for file in own) - self._limit_bytes
        dropped = []
        for file in sorted(own, key=lambda file: file.last_used_at):
            if excess <= 0:
                break
            if file is not kept:
                excess -= file.n_bytes
                del self._files[file.path]
                dropped.append(file)
        return dropped

    def touch(self, file: OnDisk) -> None:
        """Note that a file was used."""
        file.last_used_at = time.time()
        try:
            os.utime(file.path)
        except OSError:
            log.info("the time of %s cannot be set", file.path.name)

    def forget(self, path: Path, *, deletes: bool) -> OnDisk | None:
        """Drop a file from the list, and from the disk if asked to; return what was known."""
        path = path.absolute()
        with self._lock:
            file = self._files.pop(path, None)
        if deletes:
            _delete(path)
        return file


def _delete(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.warning("%s cannot be deleted: %s", path.name, error)
