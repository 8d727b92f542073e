"""Memory: what the sequences of one context remember, over one pool of pages per layer shape."""

import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from engine.compute.cpu.signatures import PAGE_CELLS
from engine.errors import ContextFullError, InternalError, RequestError
from engine.memory.kv_layout import KVLayer, find_kv_type
from engine.memory.page_list import NO_END, PageList, Positions
from engine.memory.page_pool import PagePool
from engine.memory.snapshot import Snapshot


@dataclass(frozen=True)
class Segment:
    """Consecutive rows [first_row, end_row) of a batch that belong to one sequence."""

    seq_id: int
    first_row: int
    end_row: int


@dataclass(frozen=True)
class Placement:
    """Where the rows of a batch went: per pool their cells, and the index of each row's page."""

    segments: tuple[Segment, ...]
    positions: Positions
    cells: tuple[Positions, ...]
    page_indices: tuple[Positions, ...]


class Memory:
    """Sequences 0 .. n_seq_max-1 of at most n_ctx cells each, and a spare one for passing work.

    Ranges are [p0, p1); a negative p0 means the beginning, a negative p1 the end. Everything is
    checked before anything changes.
    """

    def __init__(
        self, layers: Sequence[KVLayer], n_ctx: int, n_seq_max: int, type_k: str, type_v: str
    ) -> None:
        shapes: dict[KVLayer, list[int]] = {}
        for i, layer in enumerate(layers):
            shapes.setdefault(layer, []).append(i)
        # One page more per sequence: the last page of each may be partly filled.
        n_pages = -(-n_ctx // PAGE_CELLS) + n_seq_max + 1
        kinds = find_kv_type(type_k), find_kv_type(type_v)
        self.n_ctx = n_ctx
        self.n_seq_max = n_seq_max
        self.pools = [PagePool(shape, ids, n_pages, *kinds) for shape, ids in shapes.items()]
        self.spare = n_seq_max
        self.lists = [[PageList(pool) for pool in self.pools] for _ in range(n_seq_max + 1)]
        self.snapshots: list[Snapshot] = []
        self.given_up: deque[Snapshot] = deque()  # by any thread, for this memory's to let go
        self.lock = threading.Lock()

    # ---- the operations of a server

    def seq_rm(self, seq_id: int, p0: int = 0, p1: int = -1) -> bool:
        """Forget the positions [p0, p1) of a sequence, of all sequences if seq_id is -1.

        Costs nothing at the end of a sequence. Returns True: this memory can always forget.
        """
        p0, p1 = _range(p0, p1)
        for each in range(self.n_seq_max) if seq_id == -1 else [self._checked(seq_id)]:
            self._remove(each, p0, p1)
        return True

    def _remove(self, seq_id: int, p0: int, p1: int) -> None:
        lists = self.lists[seq_id]
        if lists[0].pos_max >= p1:  # something stays behind the range: a shared page is split
            self._check_room([one.count_copies(p0, p1) for one in lists])
        for one in lists:
            one.remove(p0, p1)

    def forget_spare(self) -> None:
        """Empty the spare sequence."""
        self._remove(self.spare, 0, NO_END)

    def take_back(self, placement: "Placement") -> None:
        """Forget the rows of a placement: what was computed for them is not whole."""
        for segment in placement.segments:
            first = int(placement.positions[segment.first_row])
            self._remove(segment.seq_id, first, NO_END)

    def seq_cp(self, source: int, target: int, p0: int = 0, p1: int = -1) -> None:
        """Let `target` share the positions [p0, p1) of `source`, by reference.

        What `target` knew in that range is forgotten first. Raises RequestError if it knows
        something behind it.
        """
        p0, p1 = _range(p0, p1)
        if self._checked(source) == self._checked(target):
            return
        origin, goal = self.lists[source], self.lists[target]
        if goal[0].pos_max >= p1:
            raise RequestError(
                f"Sequence {target} already goes beyond position {p1}: remove that part before "
                "copying into it."
            )
        self.seq_rm(target, p0, p1)
        # A page that begins before p0 is copied, and so is a cut one at the end of the target.
        self._check_room([bool(p0) + bool(one.n_pages) for one in goal])
        for one, other in zip(goal, origin, strict=True):
            one.share(other, p0, p1)

    def seq_keep(self, seq_id: int) -> None:
        """Forget every sequence but this one."""
        self._checked(seq_id)
        for other in range(self.n_seq_max):
            if other != seq_id:
                self.seq_rm(other)

    def seq_add(self, seq_id: int, p0: int, p1: int, delta: int) -> None:
        """Add delta to the positions [p0, p1); their K is rotated before the next decode.

        Cells whose position becomes negative are forgotten.
        """
        if delta:
            self._move(seq_id, p0, p1, "add", delta)

    def seq_div(self, seq_id: int, p0: int, p1: int, divisor: int) -> None:
        """Divide the positions [p0, p1), rounding down."""
        if divisor < 1:
            raise RequestError(f"Positions cannot be divided by {divisor}.")
        if divisor > 1:
            self._move(seq_id, p0, p1, "divide", divisor)

    def seq_pos_min(self, seq_id: int) -> int:
        """Return the first position that the sequence remembers in every layer, or -1."""
        return max(one.pos_min for one in self.lists[self._checked(seq_id)])

    def seq_pos_max(self, seq_id: int) -> int:
        """Return the last position that the sequence remembers, or -1."""
        return min(one.pos_max for one in self.lists[self._checked(seq_id)])

    def tokens(self, seq_id: int) -> list[int]:
        """Return the tokens that a sequence remembers, in the order of their positions."""
        lists = self.lists[self._checked(seq_id)]
        widest = max(lists, key=lambda one: one.n_cells)
        return widest.tokens().tolist()

    def snapshot(
        self, seq_id: int, fingerprint: Mapping[str, str] = MappingProxyType({})
    ) -> Snapshot:
        """Hold what a sequence remembers now, by reference: no byte of K or V is copied.

        No cell of it may wait for a shift. `fingerprint` goes into the files written from it.
        """
        self._let_go()
        lists = self.lists[self._checked(seq_id)]
        if any(one.pool.shifted.intersection(one.pages.tolist()) for one in lists):
            raise InternalError("A sequence was to be kept while cells wait for their shift.")
        held = [PageList(pool) for pool in self.pools]
        for one, other in zip(held, lists, strict=True):
            one.share(other, 0, NO_END)
        tokens = np.array(self.tokens(seq_id), np.int32)
        self.snapshots.append(Snapshot(self, tokens, held, fingerprint))
        return self.snapshots[-1]

    def restore(self, snapshot: Snapshot, seq_id: int) -> None:
        """Let a sequence remember what a snapshot holds, by sharing its pages."""
        if not snapshot.is_held or snapshot not in self.snapshots:
            raise InternalError("A snapshot was restored that this memory does not hold.")
        self.seq_rm(self._checked(seq_id), 0, NO_END)
        for one, other in zip(self.lists[seq_id], snapshot.lists, strict=True):
            one.share(other, 0, NO_END)

    def _let_go(self) -> None:
        """Give back the pages of the snapshots that have been released."""
        while self.given_up:
            snapshot = self.given_up.popleft()
            self.snapshots.remove(snapshot)
            for one in snapshot.lists:
                one.remove(0, NO_END)

    def clear(self) -> None:
        """Forget everything but the snapshots."""
        self.seq_rm(-1)

    def stats(self) -> dict[str, int]:
        """Return pages used, shared and free, and the bytes of the used ones and of all."""
        self._let_go()
        used = [int(np.count_nonzero(pool.references)) for pool in self.pools]
        shared = sum(int(np.count_nonzero(pool.references > 1)) for pool in self.pools)
        return {
            "pages_used": sum(used),
            "pages_shared": shared,
            "pages_free": sum(pool.n_free for pool in self.pools),
            "bytes_used": sum(
                n * pool.page_bytes for n, pool in zip(used, self.pools, strict=True)
            ),
            "bytes_total": sum(pool.n_pages * pool.page_bytes for pool in self.pools),
            "n_cells": sum(lists[0].n_cells for lists in self.lists),
        }

    def check_integrity(self) -> None:
        """Prove that references, lists and cells agree; raises InternalError otherwise."""
        self._let_go()
        held = [list(snapshot.lists) for snapshot in self.snapshots]
        for i, pool in enumerate(self.pools):
            lists = [each[i] for each in (*self.lists, *held)]
            pool.check_integrity(np.concatenate([one.pages for one in lists]))
            for one in lists:
                one.check_integrity()

    # ---- what the runtime asks

    def place(
        self, segments: Sequence[Segment], positions: Positions, tokens: Positions
    ) -> Placement:
        """Give every row of a batch its cell in every pool.

        `positions`, `tokens` int32[n_rows]; positions rise within a segment and follow what its
        sequence remembers. Raises ContextFullError, nothing changed, if the rows do not fit.
        """
        for segment in segments:
            n_known = self.lists[segment.seq_id][0].n_cells
            n_new = segment.end_row - segment.first_row
            if n_known + n_new > self.n_ctx:
                raise ContextFullError(
                    f"{n_new} more tokens do not fit: the context holds {self.n_ctx} and "
                    f"{n_known} are taken. Shorten the prompt or open a larger context."
                )
        needed = [0] * len(self.pools)
        for segment in segments:
            for i, one in enumerate(self.lists[segment.seq_id]):
                needed[i] += one.count_pages_for(segment.end_row - segment.first_row)
        self._check_room(needed)
        cells = tuple(np.empty(len(positions), np.int32) for _ in self.pools)
        indices = tuple(np.empty(len(positions), np.int32) for _ in self.pools)
        for segment in segments:
            rows = slice(segment.first_row, segment.end_row)
            for i, one in enumerate(self.lists[segment.seq_id]):
                cells[i][rows], indices[i][rows] = one.append(positions[rows], tokens[rows])
        return Placement(tuple(segments), positions, cells, indices)

    def runs(self, i_pool: int, placement: Placement, rows: Positions) -> NDArray[np.int64]:
        """Return the runs of some rows (rising) for one pool: int64[n_runs, 4].

        Per run: its first row (an index into `rows`), its number of rows, the address of its page
        ids and their number. The addresses stay good until the next operation on the memory.
        """
        found = []
        window = self.pools[i_pool].shape.window
        for segment in placement.segments:
            first, end = 0, len(rows)
            if len(placement.segments) > 1:
                first, end = np.searchsorted(rows, (segment.first_row, segment.end_row)).tolist()
            if first == end:
                continue
            pages = self.lists[segment.seq_id][i_pool]
            n_pages = int(placement.page_indices[i_pool][rows[end - 1]]) + 1
            pos = int(placement.positions[rows[first]])
            skipped = pages.skip_passed(pos - window + 1) if window else 0
            found.append((first, end - first, pages.address + 4 * skipped, n_pages - skipped))
        return np.array(found, np.int64).reshape(-1, 4)

    def shifted_pages(self) -> Iterator[tuple[PagePool, NDArray[np.int32], Positions]]:
        """Yield pool, pages and how far K of their cells must turn, int32[n, 32]."""
        for pool in self.pools:
            if pool.shifted:
                pages = np.array(sorted(pool.shifted), np.int32)
                yield pool, pages, np.ascontiguousarray(pool.shifts[pages])

    def _move(self, seq_id: int, p0: int, p1: int, verb: str, number: int) -> None:
        p0, p1 = _range(p0, p1)
        lists = self.lists[self._checked(seq_id)]
        if verb == "add" and lists[0].pos_max + number > NO_END:
            raise RequestError(f"Positions cannot be moved by {number}.")
        self._check_room([one.count_copies(p0, p1) for one in lists])
        for one in lists:
            if verb == "add":
                one.move(p0, p1, lambda shown: shown + np.int32(number))
            else:
                one.move(p0, p1, lambda shown: shown // np.int32(number))

    def _checked(self, seq_id: int) -> int:
        if not 0 <= seq_id < self.n_seq_max:
            raise RequestError(
                f"There is no sequence {seq_id}: this context has 0 to {self.n_seq_max - 1}."
            )
        return seq_id

    def _check_room(self, needed: Sequence[int]) -> None:
        self._let_go()
        for pool, n in zip(self.pools, needed, strict=False):
            if n > pool.n_free:
                raise ContextFullError(
                    f"The context is full: {n} pages of {PAGE_CELLS} tokens are needed and "
                    f"{pool.n_free} are free. Remove a sequence or open a larger context."
                )


def _range(p0: int, p1: int) -> tuple[int, int]:
    return max(p0, 0), NO_END if p1 < 0 else p1
