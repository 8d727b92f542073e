"""Snapshot: what a sequence remembered at one moment, its pages held by reference."""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.errors import InternalError
from engine.memory.page_list import PageList
from engine.memory.sequence_writer import Held, write_sequence

if TYPE_CHECKING:
    from engine.memory.memory import Memory


class Snapshot:
    """The pages of a sequence as they were; whoever writes into one of them copies it first.

    Made by the thread that owns the memory, in time that does not depend on the pages' bytes.
    Everything here may be called from any thread. It keeps its pages from being used for anything
    else until it is released.
    """

    def __init__(
        self,
        memory: "Memory",
        tokens: NDArray[np.int32],
        lists: Sequence[PageList],
        fingerprint: Mapping[str, str],
    ) -> None:
        self._memory = memory
        self._fingerprint = dict(fingerprint)
        self._n_writers = 0
        self._is_wanted = True
        self.tokens = tokens
        self.lists = tuple(lists)
        self.pos_min = max(one.pos_min for one in lists)
        self.pos_max = lists[0].pos_max
        self.n_bytes = sum(one.n_pages * one.pool.page_bytes for one in lists)
        self.n_cells = lists[0].n_cells

    @property
    def is_held(self) -> bool:
        """Whether the pages are still held: until then it can be written and restored."""
        return self._is_wanted

    def write(
        self,
        path: str | os.PathLike[str],
        extras: Mapping[str, NDArray[np.float32]] = MappingProxyType({}),
        *,
        adds: bool = False,
        behind: "Sequence[Snapshot]" = (),
    ) -> int:
        """Write the pages to a file; return the bytes written.

        An older file is replaced in one step. With `adds`, one that fits is added to: what it
        holds already is not written again. `extras` come back as `SavedSequence.extras`; `behind`
        are the same sequence some tokens before, so that it may go on from there too. Raises
        MachineError if it cannot be stored, InternalError after `release`.
        """
        before = [(each.n_cells, each.lists) for each in behind]
        held = Held(self.tokens, self.lists, extras, before)
        with contextlib.ExitStack() as stack:
            for each in (self, *behind):
                stack.enter_context(each._in_use())
            return write_sequence(Path(path), self._fingerprint, held, adds=adds)

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[None]:
        """Keep the pages inside the block, whoever releases them meanwhile."""
        with self._memory.lock:
            if not self._is_wanted:
                raise InternalError("A snapshot was written after it had been released.")
            self._n_writers += 1
        try:
            yield
        finally:
            with self._memory.lock:
                self._n_writers -= 1
                self._give_up()

    def release(self) -> None:
        """Let the pages go, as soon as no `write` reads them; releasing again does nothing."""
        with self._memory.lock:
            if self._is_wanted:
                self._is_wanted = False
                self._give_up()

    def drop(self) -> None:
        """Be released, while the memory lets go of all its pages; it holds the lock."""
        self._is_wanted = False

    def _give_up(self) -> None:
        if not self._is_wanted and not self._n_writers:
            self._memory.given_up.append(self)
