"""Memory: what the sequences of one context remember, over one pool of pages per layer shape."""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from engine.compute.cpu.signatures import PAGE_CELLS
from engine.errors import ContextFullError, InternalError, RequestError
from engine.memory.kv_layout import KVLayer
from engine.memory.page_list import NO_END, PageList, Positions
from engine.memory.page_pool import PagePool
from engine.memory.placement import Placement, Segment, run_table
from engine.memory.pool_sizes import make_pools
from engine.memory.snapshot import Snapshot
from engine.memory.window import counts_lost, windows_hold


class Memory:
    """Sequences 0 .. n_seq_max-1 of at most n_ctx cells each, and a spare one for passing work.

    The first list of a sequence holds all its cells. One with a window holds the last ones; the
    pages behind the window of what is placed next are given up. Ranges are [p0, p1); a negative
    p0 means the beginning, a negative p1 the end. Everything is checked before anything changes.
    """

    def __init__(
        self,
        layers: Sequence[KVLayer],
        n_ctx: int,
        n_seq_max: int,
        type_k: str,
        type_v: str,
        n_batch: int | None = None,
        snapshot_bytes: int = 0,
    ) -> None:
        """Make room for n_ctx cells, for batches of n_batch rows (n_ctx when None).

        `snapshot_bytes` is how much K and V of snapshots has room beside the sequences.
        """
        self.n_ctx = n_ctx
        self.n_seq_max = n_seq_max
        self.n_batch = min(n_batch or n_ctx, n_ctx)
        sizes = (n_ctx, n_seq_max, self.n_batch, snapshot_bytes)
        self.pools = make_pools(layers, type_k, type_v, *sizes)
        self.window = max(pool.shape.window for pool in self.pools)
        self.spare = n_seq_max
        self.lists = [[PageList(pool) for pool in self.pools] for _ in range(n_seq_max + 1)]
        self.snapshots: list[Snapshot] = []
        self.given_up: deque[Snapshot] = deque()  # by any thread, for this memory's to let go
        self.lock = threading.Lock()

    # ---- the operations of a server

    def seq_rm(self, seq_id: int, p0: int = 0, p1: int = -1) -> bool:
        """Forget the positions [p0, p1) of a sequence, of all sequences if seq_id is -1.

        Costs nothing at the end of a sequence. Returns False, nothing changed, if the sequence
        could not go on from there, because a window no longer reaches back so far: it must be
        forgotten whole and read again. Raises ContextFullError, nothing changed, if shared pages
        must be copied to take out a middle and none is free.
        """
        p0, p1 = _range(p0, p1)
        chosen = range(self.n_seq_max) if seq_id == -1 else [self._checked(seq_id)]
        if not all(self._can_go_on_without(each, p0, p1) for each in chosen):
            return False
        split = [self.lists[each] for each in chosen if self.lists[each][0].pos_max >= p1]
        if split:  # something stays behind the range
            counts = [[one.count_pages_to_remove(p0, p1) for one in each] for each in split]
            self._check_room([sum(each) for each in zip(*counts, strict=True)])
        for each in chosen:
            self._remove(each, p0, p1)
        return True

    def _can_go_on_without(self, seq_id: int, p0: int, p1: int) -> bool:
        lists = self.lists[seq_id]
        lost = counts_lost(lists)
        if p0 <= 0 and p1 > lists[0].pos_max or not any(lost):
            return True
        known = lists[0].in_order()
        return windows_hold(lists, lost, np.where((known >= p0) & (known < p1), -1, known))

    def _remove(self, seq_id: int, p0: int, p1: int) -> None:
        for one in self.lists[seq_id]:
            one.remove(p0, p1)

    def forget_spare(self) -> None:
        """Empty the spare sequence."""
        self._remove(self.spare, 0, NO_END)

    def take_back(self, placement: Placement) -> None:
        """Forget the rows of a placement: what was computed for them is not whole."""
        for segment in placement.segments:
            first = int(placement.positions[segment.first_row])
            self._remove(segment.seq_id, first, NO_END)

    def seq_cp(self, source: int, target: int, p0: int = 0, p1: int = -1) -> None:
        """Let `target` share the positions [p0, p1) of `source`, by reference.

        What `target` knew in that range is forgotten first. Raises RequestError, nothing changed,
        if it knows something behind it, or if a window of `source` no longer reaches back so far.
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
        hidden = self._check_copy(origin, goal, p0, p1)
        # A page that begins before p0 is copied, and so is a cut one at the end of the target.
        self._check_room([(1 + bool(one.n_pages)) if p0 else 0 for one in goal])
        self._remove(target, p0, NO_END)
        for one, other, is_hidden in zip(goal, origin, hidden, strict=True):
            if is_hidden:
                one.remove(0, NO_END)
            one.share(other, p0, p1)

    def _check_copy(
        self, origin: Sequence[PageList], goal: Sequence[PageList], p0: int, p1: int
    ) -> list[bool]:
        """Return for each list of the goal whether what it knows lies behind a hole in its window.

        Raises RequestError if the copy could not go on.
        """
        known = goal[0].in_order()
        known = known[known < p0]
        copied = origin[0].in_order()
        inside = (copied >= p0) & (copied < p1)
        gone = [int(np.count_nonzero(inside[:n])) for n in counts_lost(origin)]
        lost = [
            len(known) + n if n else min(before, len(known))
            for n, before in zip(gone, counts_lost(goal), strict=True)
        ]
        if not windows_hold(goal, lost, np.concatenate([known, copied[inside]])):
            raise RequestError(
                "That part cannot be shared: layers with a window have already let go of what "
                "comes before its end. It must be read again."
            )
        return [n > 0 for n in gone]

    def seq_keep(self, seq_id: int) -> None:
        """Forget every sequence but this one."""
        self._checked(seq_id)
        for other in range(self.n_seq_max):
            if other != seq_id:
                self._remove(other, 0, NO_END)

    def seq_add(self, seq_id: int, p0: int, p1: int, delta: int) -> None:
        """Add delta to the positions [p0, p1); their K is rotated before the next decode.

        Cells whose position becomes negative are forgotten. Raises RequestError, nothing changed,
        if positions would no longer rise, or move into a window that has let go of them.
        """
        if self.lists[self._checked(seq_id)][0].pos_max + delta > NO_END:
            raise RequestError(f"Positions cannot be moved by {delta}.")
        if delta:
            self._move(seq_id, p0, p1, lambda shown: shown + np.int32(delta))

    def seq_div(self, seq_id: int, p0: int, p1: int, divisor: int) -> None:
        """Divide the positions [p0, p1), rounding down; raises RequestError as `seq_add`."""
        if divisor < 1:
            raise RequestError(f"Positions cannot be divided by {divisor}.")
        if divisor > 1:
            self._move(seq_id, p0, p1, lambda shown: shown // np.int32(divisor))

    def _move(self, seq_id: int, p0: int, p1: int, moved: Callable[[Positions], Positions]) -> None:
        p0, p1 = _range(p0, p1)
        lists = self.lists[self._checked(seq_id)]
        lost = counts_lost(lists)
        if any(lost):
            known = lists[0].in_order()
            after = np.where((known >= p0) & (known < p1), moved(known), known)
            if not windows_hold(lists, lost, after):
                raise RequestError(
                    "The positions cannot be moved so far: layers with a window have already let "
                    "go of what would come into sight. It must be read again."
                )
        self._check_room([one.count_copies(p0, p1) for one in lists])
        for one in lists:
            one.move(p0, p1, moved)

    def seq_pos_min(self, seq_id: int) -> int:
        """Return the first position that the sequence remembers in every layer, or -1."""
        return max(one.pos_min for one in self.lists[self._checked(seq_id)])

    def seq_pos_max(self, seq_id: int) -> int:
        """Return the last position that the sequence remembers, or -1."""
        return self.lists[self._checked(seq_id)][0].pos_max

    def count_bytes(self, seq_id: int) -> int:
        """Return the bytes of the pages of a sequence, shared ones too; any thread may ask."""
        lists = self.lists[self._checked(seq_id)]
        return sum(one.n_pages * one.pool.page_bytes for one in lists)

    def reaches(self, seq_id: int, pos: int) -> bool:
        """Return whether a sequence holds all that position `pos`, if it came next, looks back at.

        That is what `seq_rm(seq_id, pos)` would return.
        """
        return self._can_go_on_without(self._checked(seq_id), pos, NO_END)

    def tokens(self, seq_id: int) -> list[int]:
        """Return the tokens that a sequence remembers, in the order of their positions."""
        return self.lists[self._checked(seq_id)][0].tokens().tolist()

    def clear(self) -> None:
        """Forget everything but the snapshots."""
        for each in range(self.n_seq_max):
            self._remove(each, 0, NO_END)

    def begin_anew(self) -> None:
        """Forget everything, snapshots too, whatever the books say; nobody may be using a page."""
        with self.lock:
            for snapshot in self.snapshots:
                snapshot.drop()
            self.snapshots.clear()
            self.given_up.clear()
        for pool in self.pools:
            pool.begin_anew()
        self.lists = [[PageList(pool) for pool in self.pools] for _ in self.lists]

    # ---- snapshots

    def snapshot(
        self, seq_id: int, fingerprint: Mapping[str, str] = MappingProxyType({})
    ) -> Snapshot:
        """Hold what a sequence remembers now, by reference: no byte of K or V is copied.

        No cell of it may wait for a shift. `fingerprint` goes into the files written from it.
        """
        self.let_go()
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
        self._remove(self._checked(seq_id), 0, NO_END)
        for one, other in zip(self.lists[seq_id], snapshot.lists, strict=True):
            one.share(other, 0, NO_END)

    def let_go(self) -> None:
        """Give back the pages of the snapshots that have been released."""
        while self.given_up:
            snapshot = self.given_up.popleft()
            self.snapshots.remove(snapshot)
            for one in snapshot.lists:
                one.remove(0, NO_END)

    # ---- books

    def stats(self) -> dict[str, int]:
        """Return pages used, shared and free, and bytes of K and V.

        `bytes_used` are those of the used pages, `bytes_kept` the part that only snapshots hold,
        `bytes_total` of all pages, used or not; `bytes_copied` were moved since the beginning,
        because somebody wrote into a shared page.
        """
        self.let_go()
        used = [int(np.count_nonzero(pool.references)) for pool in self.pools]
        shared = sum(int(np.count_nonzero(pool.references > 1)) for pool in self.pools)
        live = [
            len(np.unique(np.concatenate([lists[i].pages for lists in self.lists])))
            for i in range(len(self.pools))
        ]
        sizes = np.array([pool.page_bytes for pool in self.pools])
        return {
            "pages_used": sum(used),
            "pages_shared": shared,
            "pages_free": sum(pool.n_free for pool in self.pools),
            "bytes_used": int(used @ sizes),
            "bytes_kept": int((np.array(used) - live) @ sizes),
            "bytes_total": sum(pool.n_pages * pool.page_bytes for pool in self.pools),
            "bytes_copied": sum(pool.n_copied * pool.page_bytes for pool in self.pools),
            "n_cells": sum(lists[0].n_cells for lists in self.lists),
        }

    def check_integrity(self) -> None:
        """Prove that references, lists and cells agree; raises InternalError otherwise."""
        self.let_go()
        sequences = [*self.lists, *(list(snapshot.lists) for snapshot in self.snapshots)]
        for i, pool in enumerate(self.pools):
            lists = [each[i] for each in sequences]
            pool.check_integrity(np.concatenate([one.pages for one in lists]))
            for one in lists:
                one.check_integrity()
        for lists in sequences:
            known = lists[0].in_order()
            for one, n in zip(lists, counts_lost(lists), strict=True):
                if n < 0 or (n and not one.pool.shape.window):
                    raise InternalError("A list without a window has lost a cell.")
                if not np.array_equal(one.in_order(), known[n:]):
                    raise InternalError("A window does not hold the last cells of its sequence.")
            if not windows_hold(lists, counts_lost(lists), known):
                raise InternalError("A window has lost a cell that the next token sees.")

    # ---- what the runtime asks

    def place(
        self, segments: Sequence[Segment], positions: Positions, tokens: Positions
    ) -> Placement:
        """Give every row of a batch its cell in every pool.

        `positions`, `tokens` int32[n_rows]; positions rise within a segment and follow what its
        sequence remembers. Raises ContextFullError, nothing changed, if the rows do not fit.
        """
        self.check_length(segments)
        for segment in segments:
            for one in self.lists[segment.seq_id]:
                if one.pool.shape.window and one.n_pages:
                    one.forget_before(one.pos_max + 2 - one.pool.shape.window)
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

    def check_length(self, segments: Sequence[Segment]) -> None:
        """Raise ContextFullError if some sequence would become longer than the context."""
        for segment in segments:
            n_known = self.lists[segment.seq_id][0].n_cells
            n_new = segment.end_row - segment.first_row
            if n_known + n_new > self.n_ctx:
                raise ContextFullError(
                    f"{n_new} more tokens do not fit: the context holds {self.n_ctx} and "
                    f"{n_known} are taken. Shorten the prompt or open a larger context."
                )

    def runs(self, i_pool: int, placement: Placement, rows: Positions) -> NDArray[np.int64]:
        """Return the runs of some rows (rising) for one pool: see `placement.run_table`."""
        return run_table([lists[i_pool] for lists in self.lists], i_pool, placement, rows)

    def shifted_pages(self) -> Iterator[tuple[PagePool, NDArray[np.int32], Positions]]:
        """Yield pool, pages and how far K of their cells must turn, int32[n, 32]."""
        for pool in self.pools:
            if pool.shifted:
                pages = np.array(sorted(pool.shifted), np.int32)
                yield pool, pages, np.ascontiguousarray(pool.shifts[pages])

    def _checked(self, seq_id: int) -> int:
        if not 0 <= seq_id < self.n_seq_max:
            raise RequestError(
                f"There is no sequence {seq_id}: this context has 0 to {self.n_seq_max - 1}."
            )
        return seq_id

    def _check_room(self, needed: Sequence[int]) -> None:
        self.let_go()
        for pool, n in zip(self.pools, needed, strict=True):
            if n > pool.n_free:
                raise ContextFullError(
                    f"The context is full: {n} pages of {PAGE_CELLS} tokens are needed and "
                    f"{pool.n_free} are free. Remove a sequence or open a larger context."
                )


def _range(p0: int, p1: int) -> tuple[int, int]:
    return max(p0, 0), NO_END if p1 < 0 else p1
