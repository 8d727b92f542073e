"""PageList: the pages of one sequence in one pool, in the order of their positions.

Every page of the list but the last shows exactly its occupied cells. The last may be cut: it
shows its first `tail` cells only, while the others belong to whoever shares the page. It is
copied before the sequence writes into it, so cutting a shared tail costs nothing.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from engine.compute.cpu.signatures import PAGE_CELLS
from engine.errors import InternalError, RequestError
from engine.memory.page_pool import EMPTY, PagePool
from engine.native.buffers import address

Positions = NDArray[np.int32]
NO_END = (1 << 31) - 1


class PageList:
    """One sequence's cells in one pool; `pos_min` and `pos_max` are -1 while it is empty."""

    __slots__ = (
        "_may_be_cut",
        "_pages",
        "address",
        "n_cells",
        "n_pages",
        "n_passed",
        "pool",
        "pos_max",
        "pos_min",
        "tail",
    )

    def __init__(self, pool: PagePool) -> None:
        self.pool = pool
        self._pages = np.zeros(16, np.int32)
        self.address = address(self._pages)  # of the page ids, until the list grows
        self.n_pages = self.tail = self.n_cells = 0
        self._may_be_cut = False
        self.n_passed = 0  # pages at the front that the window has left behind
        self.pos_min = self.pos_max = EMPTY

    @property
    def pages(self) -> Positions:
        """The page ids in order (a view)."""
        return self._pages[: self.n_pages]

    def visible(self) -> Positions:
        """Return the positions of the list's cells: int32[n_pages, 32], -1 = not visible."""
        shown = self.pool.positions[self.pages]
        if self.n_pages:
            shown[-1, self.tail :] = EMPTY
        return shown

    def in_order(self) -> Positions:
        """Return the positions of the list's cells, rising: int32[n_cells]."""
        shown = self.visible()
        return shown[shown != EMPTY]

    def tokens(self) -> Positions:
        """Return the tokens of the list's cells, in the order of their positions."""
        return self.pool.tokens[self.pages][self.visible() != EMPTY]

    # ---- writing

    def count_pages_for(self, n_cells: int) -> int:
        """Return how many free pages `append` of n cells will take."""
        room = PAGE_CELLS - self.tail if self.n_pages else 0
        copies = bool(room) and self.pool.is_shared(self._pages[self.n_pages - 1])
        return -(-max(0, n_cells - room) // PAGE_CELLS) + bool(copies and n_cells)

    def append(self, positions: Positions, tokens: Positions) -> tuple[Positions, Positions]:
        """Give a cell to each position and its token; positions must follow `pos_max` and rise.

        Returns the cells (page * 32 + offset) and, per cell, the index of its page in the list.
        """
        n = len(positions)
        cells, indices = np.empty(n, np.int32), np.empty(n, np.int32)
        done = 0
        while done < n:
            page = self._page_with_room()
            take = min(n - done, PAGE_CELLS - self.tail)
            end = self.tail + take
            self.pool.positions[page, self.tail : end] = positions[done : done + take]
            self.pool.tokens[page, self.tail : end] = tokens[done : done + take]
            first = page * PAGE_CELLS + self.tail
            cells[done : done + take] = first if take == 1 else np.arange(first, first + take)
            indices[done : done + take] = self.n_pages - 1
            self.tail = end
            done += take
        if n:
            self.n_cells += n
            self.pos_max = int(positions[-1])
            if self.pos_min == EMPTY:
                self.pos_min = int(positions[0])
        return cells, indices

    def _page_with_room(self) -> int:
        if self.n_pages and self.tail < PAGE_CELLS:
            return self._own_last()
        self._make_room(self.n_pages + 1)
        page = self.pool.acquire()
        self._pages[self.n_pages] = page
        self.n_pages += 1
        self.tail = 0
        self._may_be_cut = False
        return page

    def _make_room(self, n_pages: int) -> None:
        while n_pages > len(self._pages):
            self._pages = np.concatenate([self._pages, np.zeros_like(self._pages)])
            self.address = address(self._pages)

    def _own_last(self) -> int:
        """Return the last page, made the list's own (copied if shared) and no longer cut."""
        at = self.n_pages - 1
        page = int(self._pages[at])
        if self.pool.is_shared(page):
            page = self._pages[at] = self.pool.copy(page)
        if self._may_be_cut:
            self.pool.clear_cells(page, slice(self.tail, None))
            self._may_be_cut = False
        return int(page)

    def _is_cut(self) -> bool:
        """Whether the last page holds cells that this list does not show."""
        last = self.pool.positions[self._pages[self.n_pages - 1]]
        return bool((last[self.tail :] != EMPTY).any())

    def skip_passed(self, pos: int) -> int:
        """Return how many pages at the front a window that starts at `pos` no longer touches."""
        shown = self.pool.positions
        while self.n_passed < self.n_pages - 1 and shown[self._pages[self.n_passed]].max() < pos:
            self.n_passed += 1
        while self.n_passed and shown[self._pages[self.n_passed - 1]].max() >= pos:
            self.n_passed -= 1
        return self.n_passed

    def forget_before(self, pos: int) -> None:
        """Give up the pages at the front whose cells all lie before `pos`."""
        n, shown = 0, self.pool.positions
        while n < self.n_pages - 1 and shown[self._pages[n]].max() < pos:
            self.n_cells -= int(np.count_nonzero(shown[self._pages[n]] != EMPTY))
            self.pool.release(int(self._pages[n]))
            n += 1
        if n:
            self.n_pages -= n
            self._pages[: self.n_pages] = self._pages[n : n + self.n_pages].copy()
            self.n_passed = max(0, self.n_passed - n)
            first = shown[self._pages[0]]
            self.pos_min = int(first[first != EMPTY][0])

    # ---- the operations on a range [p0, p1)

    def count_copies(self, p0: int, p1: int) -> int:
        """Return how many free pages it takes to move the cells in [p0, p1)."""
        shown = self.visible()
        touched = ((shown >= p0) & (shown < p1)).any(axis=1)
        return int(np.count_nonzero(self.pool.references[self.pages[touched]] > 1))

    def count_pages_to_remove(self, p0: int, p1: int) -> int:
        """Return how many free pages it takes to remove [p0, p1): negative when it frees some."""
        shown = self.visible()
        gone = (shown >= p0) & (shown < p1)
        kept = ((shown != EMPTY) & ~gone).any(axis=1)
        references = self.pool.references[self.pages]
        freed = np.count_nonzero(~kept & (references == 1))
        copied = np.count_nonzero(kept & gone.any(axis=1) & (references > 1))
        return int(copied - freed)

    def remove(self, p0: int, p1: int) -> None:
        """Empty the cells in [p0, p1): nothing is copied when they are the end of the list."""
        shown = self.visible()
        gone = (shown >= p0) & (shown < p1)
        if gone.any():
            self._drop(shown, gone)

    def _drop(self, shown: Positions, gone: NDArray[np.bool_]) -> None:
        kept = (shown != EMPTY) & ~gone
        stays = np.flatnonzero(kept.any(axis=1))
        for i in np.flatnonzero(~kept.any(axis=1)):
            self.pool.release(int(self._pages[i]))
        last = int(stays[-1]) if len(stays) else -1
        for i in stays[gone[stays].any(axis=1)]:
            page = int(self._pages[i])
            is_tail = i == last and not kept[i, int(np.argmax(gone[i])) :].any()
            if self.pool.is_shared(page):
                if is_tail:
                    continue
                page = self._pages[i] = self.pool.copy(page)
            self.pool.clear_cells(page, gone[i])
        self._pages[: len(stays)] = self._pages[stays]
        if last >= 0 and (last < self.n_pages - 1 or gone[last].any()):
            self.tail = int(np.flatnonzero(kept[last])[-1]) + 1
        self.n_pages = len(stays)
        self._recount()

    def _recount(self) -> None:
        shown = self.visible()
        used = shown[shown != EMPTY]
        self.n_cells = len(used)
        self.n_passed = 0
        self._may_be_cut = True
        self.pos_min = int(used[0]) if len(used) else EMPTY
        self.pos_max = int(used[-1]) if len(used) else EMPTY
        if not self.n_pages:
            self.tail = 0

    def share(self, source: "PageList", p0: int, p1: int) -> None:
        """Take over the cells [p0, p1) of another list, sharing its pages.

        They must lie after everything in this list; a page that begins before p0 is copied.
        """
        shown = source.visible()
        taken = (shown >= p0) & (shown < p1)
        at = np.flatnonzero(taken.any(axis=1))
        if not len(at):
            return
        if self.n_pages and self._is_cut():
            self._own_last()
        pages = source.pages[at].copy()
        self.pool.retain(pages)
        self._make_room(self.n_pages + len(pages))
        start = self.n_pages
        self._pages[start : start + len(pages)] = pages
        self.n_pages += len(pages)
        hidden = (shown[at] != EMPTY) & ~taken[at]
        for i in np.flatnonzero(hidden.any(axis=1)):
            first_hidden, last_taken = int(np.argmax(hidden[i])), np.flatnonzero(taken[at[i]])[-1]
            if i < len(at) - 1 or first_hidden < last_taken:
                page = self._pages[start + i] = self.pool.copy(int(pages[i]))
                self.pool.clear_cells(page, hidden[i])
        self.tail = int(np.flatnonzero(taken[at[-1]])[-1]) + 1
        self._recount()

    def adopt(self, positions: Positions, tokens: Positions) -> Positions:
        """Fill an empty list with pages of its own that hold these cells; return their ids.

        `positions` int32[n, 32] (-1 = empty) rise, and every page holds a cell; `tokens` are
        those of the cells in order.
        """
        ids = np.array([self.pool.acquire() for _ in positions], np.int32)
        self._make_room(len(ids))
        self._pages[: len(ids)] = ids
        self.n_pages = len(ids)
        self.pool.positions[ids] = positions
        cells = np.zeros(positions.shape, np.int32)
        cells[positions != EMPTY] = tokens
        self.pool.tokens[ids] = cells
        self.tail = int(np.flatnonzero(positions[-1] != EMPTY)[-1]) + 1 if len(ids) else 0
        self._recount()
        return ids

    def move(self, p0: int, p1: int, moved: Callable[[Positions], Positions]) -> None:
        """Give the cells in [p0, p1) the positions `moved(old)`; their K is noted as shifted.

        Cells whose position becomes negative are emptied. Raises RequestError, nothing changed,
        if the positions would no longer rise along the list.
        """
        shown = self.visible()
        inside = (shown >= p0) & (shown < p1)
        if not inside.any():
            return
        after = np.where(inside, moved(shown), shown)
        order = after[(shown != EMPTY) & (after >= 0)]
        if (np.diff(order) < 0).any():
            raise RequestError(
                f"Moving the positions {p0} to {p1} would put the sequence out of order: remove "
                "what stands in their way first."
            )
        for i in np.flatnonzero(inside.any(axis=1)):
            page = int(self._pages[i])
            if self.pool.is_shared(page):
                page = self._pages[i] = self.pool.copy(page)
            if i == self.n_pages - 1:
                self._own_last()
            self.pool.add_shift(page, np.where(inside[i], after[i] - shown[i], 0))
            self.pool.positions[page] = np.where(inside[i], after[i], shown[i])
        gone = inside & (after < 0)
        if gone.any():
            self._drop_negative(after, gone)
        self._recount()

    def _drop_negative(self, after: Positions, gone: NDArray[np.bool_]) -> None:
        shown = np.where(gone, 0, after)
        self._drop(shown, gone)

    def check_integrity(self) -> None:
        """Prove the list's own promises; raises InternalError with the first that is broken."""
        shown = self.visible()
        used = shown[shown != EMPTY]
        if self.n_pages and not (shown != EMPTY).any(axis=1).all():
            raise InternalError("A sequence lists a page in which it shows no cell.")
        if (np.diff(used) < 0).any():
            raise InternalError("The positions of a sequence do not rise.")
        ends = (int(used[0]), int(used[-1])) if len(used) else (EMPTY, EMPTY)
        if (self.pos_min, self.pos_max, self.n_cells) != (*ends, len(used)):
            raise InternalError("A sequence's ends or length are not those of its cells.")
        if len(set(self.pages.tolist())) != self.n_pages:
            raise InternalError("A sequence lists a page twice.")
