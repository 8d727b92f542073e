"""Keeper: writes what is known to files: saved slots, kept conversations, all of it before sleep.

The engine thread only takes hold of the pages; the file thread writes them while answers go on.
"""

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.errors import EngineError, MachineError
from engine.memory import MOST_CHECKPOINTS
from engine.server.file_thread import FileThread
from engine.server.known_places import LEAST_LOSS, KnownPlaces
from engine.server.places import OnDisk, Parked
from engine.server.slot import Slot
from engine.server.slot_files import SlotFile

log = logging.getLogger(__name__)

ASLEEP = "asleep-"  # begins the names of files that are written before sleep


@dataclass(frozen=True)
class _Held:
    """A snapshot with its tokens, and the logits behind the prompt that it begins with."""

    snapshot: Any
    tokens: list[int]
    row: tuple[int, Any] | None


class Keeper:
    """Files of what is known. Engine thread only; the answers come from the file thread."""

    def __init__(self, known: KnownPlaces, files: FileThread, context: Any, fork: int) -> None:
        """`fork` is a sequence that may be used in passing."""
        self._known = known
        self._files = files
        self._context = context
        self._fork = fork

    def save_slot(self, slot: Slot, path: Path) -> "Future[SlotFile]":
        """Write what a slot remembers, as a file of its own; raises EngineError."""
        snapshot = self._context.snapshot_sequence(slot.id)
        held = _Held(snapshot, list(slot.tokens), slot.prompt_row)
        return self._write(held, path, slot.id)

    def keep(
        self, tokens: Sequence[int], path: Path, *, is_export: bool = False
    ) -> "Future[SlotFile]":
        """Write what is known of a conversation, wherever; nothing known is no file.

        A file from which prompts may start is added to. Any other one is written whole: it may be
        one that was found damaged. An export is written whole too, and no prompt starts from it.
        """
        adds = not is_export and self._known.saved.find(path) is not None
        for place, n_known in self._known.best_of(tokens):
            if isinstance(place, OnDisk):
                return self._copy(place.path, path, n_known, notes=not is_export)
            try:
                snapshot = self._cut(place, n_known)
            except EngineError as error:
                log.info("a prefix of %d tokens cannot be kept: %s", n_known, error)
                continue
            held = _Held(snapshot, list(tokens[:n_known]), place.prompt_row)
            id_slot = place.id if isinstance(place, Slot) else -1
            return self._write(held, path, id_slot, adds=adds, notes=not is_export)
        nothing: Future[SlotFile] = Future()
        nothing.set_result(SlotFile(-1, "", 0, 0.0))
        return nothing

    def adopt(self, source: Path, path: Path) -> "Future[SlotFile]":
        """Take a file from elsewhere over, if it is whole and of this model."""
        return self._copy(source, path)

    def _cut(self, place: Slot | Parked, n_tokens: int) -> Any:
        """Return a snapshot of the first tokens of a place; raises EngineError."""
        context, memory = self._context, self._context.memory
        try:
            if isinstance(place, Slot):
                memory.seq_cp(place.id, self._fork, 0, n_tokens)
            else:
                context.restore_snapshot(place.snapshot, self._fork)
                if n_tokens < len(place.tokens) and not memory.seq_rm(self._fork, n_tokens, -1):
                    raise MachineError("The memory of the conversation cannot be cut there.")
            return context.snapshot_sequence(self._fork)
        finally:
            memory.seq_rm(self._fork, 0, -1)

    def _write(
        self, held: "_Held", path: Path, id_slot: int, *, adds: bool = False, notes: bool = True
    ) -> "Future[SlotFile]":
        """Let the file thread write; `notes` lets prompts start from the file."""
        started_at, n_tokens = time.monotonic(), len(held.tokens)
        extras, has_window = {}, self._known.has_window
        if held.row is not None and held.row[0] <= n_tokens:
            n_prompt, row = held.row
            extras = {"row": row, "n_prompt": np.array([n_prompt], np.float32)}
        behind = self._behind(held) if has_window else []

        def write() -> SlotFile:
            try:
                n_written = held.snapshot.write(path, extras, adds=adds, behind=behind)
            finally:
                for snapshot in (held.snapshot, *behind):
                    snapshot.release()
            if notes:  # a file keeps the checkpoints that it had
                checkpoints = self._context.peek_checkpoints(path) if has_window else ()
                self._known.add_file(path, held.tokens, checkpoints)
            return SlotFile(id_slot, str(path), n_tokens, _ms_since(started_at), n_written)

        return self._files.write(write)

    def _behind(self, held: "_Held") -> list[Any]:
        """Return snapshots of what windows have let go of since: before the answer, and earlier.

        With them in the file the last answer is given anew without reading, and a question is
        asked otherwise by reading only what is new, after a restart too.
        """
        found: dict[int, Slot | Parked] = {}
        n_prompt = held.row[0] if held.row is not None else 0
        for tokens in (held.tokens[:n_prompt], held.tokens):
            for place, n in self._known.best_of(tokens):
                if isinstance(place, OnDisk) or not LEAST_LOSS <= n < len(held.tokens):
                    continue
                if n in (n_prompt, len(place.tokens)):
                    found.setdefault(n, place)
        snapshots = []
        for n in sorted(found, reverse=True)[:MOST_CHECKPOINTS]:
            try:
                snapshots.append(self._cut(found[n], n))
            except EngineError as error:
                log.info("the place after %d tokens cannot be kept: %s", n, error)
        return snapshots

    def _copy(
        self, source: Path, path: Path, n_tokens: int = -1, *, notes: bool = True
    ) -> "Future[SlotFile]":
        """Let the file thread copy the first tokens of a file (-1: all); a file is its own copy."""
        started_at = time.monotonic()

        def copy() -> SlotFile:
            if path.absolute() != source.absolute():
                saved = self._context.copy_saved(source, path, n_tokens)
                n_written = path.stat().st_size
            elif n_tokens >= 0:
                return SlotFile(-1, str(path), n_tokens, _ms_since(started_at))
            else:
                saved, n_written = self._context.read_saved(path), 0
            if notes:
                self._known.add_file(path, list(saved.tokens), saved.checkpoints)
            return SlotFile(-1, str(path), len(saved.tokens), _ms_since(started_at), n_written)

        return self._files.write(copy)

    def write_all(self, folder: Path, is_disturbed: Callable[[], bool]) -> bool:
        """Write all that memory knows and no file does; False if disturbed meanwhile.

        A conversation that cannot be written is read again some time.
        """
        if not self._wait_for_files(is_disturbed):  # or they would pile up behind a stuck disk
            return False
        written: list[tuple[list[int], Path, Future[SlotFile]]] = []
        for i, (place, tokens) in enumerate(self._known.in_memory()):
            if is_disturbed():
                return False
            try:
                snapshot = self._cut(place, len(tokens))
            except EngineError as error:
                log.warning("%d tokens are not kept while asleep: %s", len(tokens), error)
                continue
            path = self._file_of_a_sleep(tokens, [path for _, path, _ in written])
            path = path or folder / f"{ASLEEP}{time.time_ns():x}-{i}.safetensors"
            done = self._write(_Held(snapshot, tokens, place.prompt_row), path, -1, adds=True)
            written.append((tokens, path, done))
        if not self._wait_for_files(is_disturbed):
            return False
        for tokens, path, done in written:
            if (failure := done.exception()) is not None:
                log.warning("a conversation is not kept while asleep: %s", failure)
            else:
                self._delete_older(tokens, path)
        return not is_disturbed()

    def _wait_for_files(self, is_disturbed: Callable[[], bool]) -> bool:
        """Wait until every file is written; False if disturbed meanwhile."""
        while not self._files.wait_idle(0.05):
            if is_disturbed():
                return False
        return True

    def _file_of_a_sleep(self, tokens: Sequence[int], taken: Sequence[Path]) -> Path | None:
        """Return the file of an earlier sleep that these tokens go on from, to be added to."""
        for place, n in self._known.matches(tokens):
            if isinstance(place, OnDisk) and place.path.name.startswith(ASLEEP):
                if n == place.n_tokens and place.path not in taken:
                    return place.path
        return None

    def _delete_older(self, tokens: Sequence[int], path: Path) -> None:
        """Delete the files of earlier sleeps that hold no more than a newer one does."""
        for place, n in self._known.matches(tokens):
            if not isinstance(place, OnDisk) or not place.path.name.startswith(ASLEEP):
                continue
            if n == place.n_tokens and place.path != path.absolute():
                self._known.forget_file(place.path, deletes=True)


def _ms_since(started_at: float) -> float:
    return (time.monotonic() - started_at) * 1000
