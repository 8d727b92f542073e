"""KeptFiles: which file holds the memory of which conversation for which model, as an index."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from app.chats.chat_file import PASSING
from app.files import write_whole

INDEX = "index.json"
_OLD_S = 3600  # no file takes longer to write
_NAME = re.compile(r"chat-(\d{1,18})-([0-9a-f]{16})\.safetensors")


@dataclass(frozen=True)
class Kept:
    """One file: `n_tokens` and `n_bytes` of it, by the clock when it was `written_at`.

    `mark` tells models apart; `unfit` is why the model cannot use the file, "" if it can.
    `n_tokens` is 0 where nobody wrote down how many they are.
    """

    conversation_id: int
    mark: str
    n_tokens: int
    n_bytes: int
    written_at: float
    unfit: str = ""

    @property
    def name(self) -> str:
        """The name of the file in its folder."""
        return file_name(self.conversation_id, self.mark)


def file_name(conversation_id: int, mark: str) -> str:
    """Return what the file of a conversation is called."""
    return f"chat-{conversation_id}-{mark}.safetensors"


class KeptFiles:
    """The files of one folder; only `load`, `sweep` and what `saving` returns touch the disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._kept: dict[int, dict[str, Kept]] = {}  # conversation → mark → file
        self._lock = threading.Lock()
        self._version = self._written = 0

    def __iter__(self) -> Iterator[Kept]:
        """Go through all files, the oldest first."""
        files = [kept for by_mark in self._kept.values() for kept in by_mark.values()]
        return iter(sorted(files, key=lambda kept: kept.written_at))

    @property
    def n_bytes(self) -> int:
        """Return how many bytes all files have together."""
        return sum(kept.n_bytes for kept in self)

    def find(self, conversation_id: int, mark: str = "") -> Kept | None:
        """Return the file of a conversation for a model, for "" the newest of any model."""
        by_mark = self._kept.get(conversation_id)
        if not by_mark:
            return None
        if mark:
            return by_mark.get(mark)
        return max(by_mark.values(), key=lambda kept: kept.written_at)

    def of_conversation(self, conversation_id: int) -> list[Kept]:
        """Return every file of a conversation."""
        return list(self._kept.get(conversation_id, {}).values())

    def put(self, kept: Kept) -> None:
        """Note a file in place of what was noted for the same conversation and model."""
        self._kept.setdefault(kept.conversation_id, {})[kept.mark] = kept

    def drop(self, kept: Kept) -> None:
        """Forget a file."""
        by_mark = self._kept.get(kept.conversation_id, {})
        by_mark.pop(kept.mark, None)
        if not by_mark:
            self._kept.pop(kept.conversation_id, None)

    def over(self, limit_bytes: int, spared: Kept | None = None) -> list[Kept]:
        """Return the oldest files, as many as must go for the others to fit the limit."""
        excess = self.n_bytes - limit_bytes
        going = []
        for kept in self:
            if excess <= 0:
                break
            if kept != spared:
                excess -= kept.n_bytes
                going.append(kept)
        return going

    def bytes_per_token(self, mark: str) -> float:
        """Return how large files of a model are, 0 while none says."""
        sizes = [
            kept.n_bytes / kept.n_tokens for kept in self if kept.mark == mark and kept.n_tokens
        ]
        return sizes[-1] if sizes else 0.0

    # ------------------------------------------------------------ the disk

    def load(self) -> None:
        """Read the index and compare it with the folder; what is damaged is passed over."""
        noted = self._noted()
        self._kept.clear()
        for path in self.folder.glob("chat-*.safetensors") if self.folder.is_dir() else ():
            parts = _NAME.fullmatch(path.name)
            if parts is None:
                continue
            try:
                size = path.stat()
            except OSError:
                continue  # another instance deletes too
            kept = noted.get(path.name)
            if kept is None or kept.n_bytes != size.st_size:
                kept = Kept(int(parts[1]), parts[2], 0, size.st_size, size.st_mtime)
            self.put(kept)

    def _noted(self) -> dict[str, Kept]:
        try:
            rows = json.loads((self.folder / INDEX).read_text(encoding="utf-8"))
            return {kept.name: kept for kept in map(_kept, rows)}
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return {}  # tokens are not known then, the files are

    @property
    def is_unsaved(self) -> bool:
        """Tell whether an index that was to be written is not yet."""
        return self._written < self._version

    def saving(self) -> Callable[[], None]:
        """Return what writes the index as it is now, on any thread; the newest index stays.

        It raises StorageError.
        """
        self._version += 1
        version, rows = self._version, [asdict(kept) for kept in self]

        def write() -> None:
            with self._lock:
                if version > self._written:
                    write_whole(self.folder / INDEX, json.dumps(rows).encode())
                    self._written = version

        return write

    def sweep(self) -> None:
        """Delete memories that a run that was killed left on their way; any thread may."""
        for path in self.folder.glob(f".chat-*{PASSING}"):
            try:
                if time.time() - path.stat().st_mtime > _OLD_S:
                    path.unlink()
            except OSError:
                continue  # it is in use, or gone already


def _kept(row: dict[str, Any]) -> Kept:
    """Return a row of the index; raises ValueError, TypeError or KeyError for any other thing."""
    return Kept(
        int(row["conversation_id"]),
        str(row["mark"]),
        max(0, int(row["n_tokens"])),
        int(row["n_bytes"]),
        min(float(row["written_at"]), time.time()),
        str(row["unfit"]),
    )
