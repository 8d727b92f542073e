"""PagePool: the pages of all layers of one shape, who refers to them, and what stands in them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.compute.cpu.signatures import PAGE_CELLS
from engine.errors import ContextFullError, InternalError, MachineError
from engine.memory.kv_layout import KVLayer, KVType, page_bytes
from engine.native.buffers import aligned

EMPTY = -1


class PagePool:
    """A fixed number of pages; page p is the same p in every layer of the pool.

    `positions` int32[n_pages, 32] holds each cell's position, -1 where empty, `tokens` its token;
    `references` how many sequences list the page; `shifts` how far the K of a cell still has to
    be rotated. `k[i]`, `v[i]` uint8[n_pages, page bytes] belong to layer `layer_ids[i]`. Pages
    that nobody has written yet take no memory.
    """

    def __init__(
        self,
        shape: KVLayer,
        layer_ids: Sequence[int],
        n_pages: int,
        type_k: KVType,
        type_v: KVType,
    ) -> None:
        self.shape = shape
        self.layer_ids = tuple(layer_ids)
        self.n_pages = n_pages
        k_bytes = page_bytes(type_k, shape.n_head_kv, shape.head_size_k)
        v_bytes = page_bytes(type_v, shape.n_head_kv, shape.head_size_v)
        self.page_bytes = (k_bytes + v_bytes) * len(self.layer_ids)
        try:
            self.k = [aligned((n_pages, k_bytes), np.uint8) for _ in self.layer_ids]
            self.v = [aligned((n_pages, v_bytes), np.uint8) for _ in self.layer_ids]
        except (MemoryError, ValueError) as error:
            raise MachineError(
                f"This machine has no {n_pages * self.page_bytes / 1e9:.1f} GB of memory for a "
                f"context of {n_pages * PAGE_CELLS} tokens: choose a shorter context."
            ) from error
        self.positions = aligned((n_pages, PAGE_CELLS), np.int32)
        self.tokens = aligned((n_pages, PAGE_CELLS), np.int32)
        self.shifts = aligned((n_pages, PAGE_CELLS), np.int32)
        self.references = np.zeros(n_pages, np.int32)
        self.shifted: set[int] = set()
        self.n_copied = 0  # pages, since the beginning
        self._released: list[int] = []  # taken again before pages that were never touched
        self._n_touched = 0
        self.begin_anew()

    def begin_anew(self) -> None:
        """Let every page be empty and free, whatever the books say."""
        self.positions[:] = EMPTY
        self.shifts[:] = 0
        self.references[:] = 0
        self.shifted.clear()
        self._released = list(range(self._n_touched))

    @property
    def n_free(self) -> int:
        """Pages that nobody refers to."""
        return len(self._released) + self.n_pages - self._n_touched

    def acquire(self) -> int:
        """Return an empty page with one reference; raises ContextFullError when none is left."""
        if not self.n_free:
            raise ContextFullError(
                f"All {self.n_pages * PAGE_CELLS} cells of the context are taken: remove a "
                "sequence or open a larger context."
            )
        if self._released:
            page = self._released.pop()
        else:
            page = self._n_touched
            self._n_touched += 1
        self.references[page] = 1
        return page

    def retain(self, pages: NDArray[np.int32]) -> None:
        """Add one reference to each of the (distinct) pages."""
        self.references[pages] += 1

    def release(self, page: int) -> None:
        """Take one reference away; the last one empties the page and frees it."""
        self.references[page] -= 1
        if self.references[page] == 0:
            self.clear_cells(page, slice(None))
            self._released.append(page)

    def copy(self, page: int) -> int:
        """Return a page of one reference with the same cells, and drop one reference of `page`."""
        target = self.acquire()
        self.n_copied += 1
        for layer in (*self.k, *self.v):
            layer[target] = layer[page]
        self.positions[target] = self.positions[page]
        self.tokens[target] = self.tokens[page]
        if page in self.shifted:
            self.shifts[target] = self.shifts[page]
            self.shifted.add(target)
        self.release(page)
        return target

    def is_shared(self, page: int) -> bool:
        """Whether more than one sequence lists the page."""
        return self.references[page] > 1

    def clear_cells(self, page: int, cells: slice | NDArray[np.bool_]) -> None:
        """Empty some cells of a page."""
        self.positions[page, cells] = EMPTY
        if page in self.shifted:
            self.shifts[page, cells] = 0
            if not self.shifts[page].any():
                self.shifted.discard(page)

    def add_shift(self, page: int, deltas: NDArray[np.int32]) -> None:
        """Note that K of a page's cells must turn by `deltas` positions before it is read."""
        self.shifts[page] += deltas
        self.shifted.add(page)

    def settle_shifts(self) -> None:
        """Forget the noted shifts: K has been turned."""
        for page in self.shifted:
            self.shifts[page] = 0
        self.shifted.clear()

    def check_integrity(self, listed: NDArray[np.int32]) -> None:
        """Prove that `listed` (every page of every sequence) and the pool's books agree.

        Raises InternalError with the first contradiction.
        """
        counted = np.bincount(listed, minlength=self.n_pages)
        free = np.array([*self._released, *range(self._n_touched, self.n_pages)], np.int64)
        if (counted != self.references).any():
            page = int(np.flatnonzero(counted != self.references)[0])
            raise InternalError(
                f"Page {page} is listed {counted[page]} times but counts "
                f"{self.references[page]} references."
            )
        if len(np.unique(free)) != len(free) or self.references[free].any():
            raise InternalError("A page is free twice, or free and in use.")
        if len(free) + np.count_nonzero(self.references) != self.n_pages:
            raise InternalError("A page is neither free nor in use.")
        if (self.positions[free] != EMPTY).any() or self.shifts[free].any():
            raise InternalError("A free page is not empty.")
        unsettled = set(np.flatnonzero(self.shifts.any(axis=1)).tolist())
        if not unsettled <= self.shifted:
            raise InternalError("A cell waits for a shift that nobody has noted.")
