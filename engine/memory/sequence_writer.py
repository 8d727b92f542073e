"""Writes a sequence to a file: whole, or only the pages that the file does not hold yet.

Decision: a page is known by the positions of its cells and the tokens up to its last one, as
everywhere a prefix is known. So an answer adds its own pages and the page before them that it
filled up; going back adds the new branch. When a file has grown to MOST_GROWTH times what it must
hold, or has MANY_PIECES, it is written anew, so bytes written stay in proportion to what is new.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.errors import StateFileError
from engine.memory.page_list import NO_END, PageList, Positions
from engine.memory.page_pool import EMPTY, PagePool
from engine.memory.saved_sequence import EXTRA, FORMAT, SavedSequence, compose, layers_of
from engine.memory.state_file import CHECKSUMS, add_to_state, read_state, write_state
from engine.memory.state_piece import Part

MOST_GROWTH = 1.5
MANY_PIECES = 64
MOST_CHECKPOINTS = 6  # of which the newest stay: three questions and their answers
_CHUNK_BYTES = 4 << 20
_NO_VOCAB_LIMIT = 1 << 31


@dataclass(frozen=True)
class Held:
    """What is to be written: a sequence's tokens and its lists, and those that it had before.

    `behind` are the lists as they were at checkpoints, each with its number of tokens.
    Nobody may change the lists or their pages meanwhile, and no cell may wait for a shift.
    """

    tokens: NDArray[np.int32]
    lists: Sequence[PageList]
    extras: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    behind: Sequence[tuple[int, Sequence[PageList]]] = ()


@dataclass(frozen=True)
class _PoolPlan:
    """The pages of one pool to write, and the lists as indices into all pages of the file."""

    one: PageList
    written: NDArray[np.int32]
    rows: Positions
    pages: Positions
    behind: Mapping[int, Positions]

    @property
    def n_bytes(self) -> int:
        return len(self.written) * self.one.pool.page_bytes


def write_sequence(
    path: Path, fingerprint: Mapping[str, str], held: Held, *, adds: bool = False
) -> int:
    """Write a sequence; `fingerprint` says which model and memory it fits.

    With `adds`, a file at `path` that fits is added to; otherwise, and where adding is not worth
    it, the file is written whole. Returns the bytes written, 0 if the file holds all of it.
    Raises MachineError if it cannot be stored.
    """
    if adds:
        n_bytes = _add(path, fingerprint, held)
        if n_bytes is not None:
            return n_bytes
    plans = [_plan(held, i, None, 0, {}) for i in range(len(held.lists))]
    checkpoints = sorted(n for n, _ in held.behind)
    parts = _parts(held, plans, 0, checkpoints)
    return write_state(path, {"format": FORMAT, **fingerprint}, parts)


def _add(path: Path, fingerprint: Mapping[str, str], held: Held) -> int | None:
    """Add what the file lacks; None if it must be written whole."""
    try:
        file = read_state(path, verifies=False)
        known = compose(file, fingerprint, _NO_VOCAB_LIMIT, len(held.lists))
    except StateFileError:
        return None
    if file.is_torn or len(file.pieces) >= MANY_PIECES:
        return None
    n_kept = _count_same(held, known)
    end = _end_of_same(held, known, n_kept)
    new = {n for n, _ in held.behind}
    kept = [n for n in known.checkpoints if n <= n_kept and n not in new]
    kept = kept[max(0, len(kept) + len(new) - MOST_CHECKPOINTS) :]
    behind = [{n: pool.behind[n] for n in kept if n in pool.behind} for pool in known.pools]
    plans = [_plan(held, i, known, end, behind[i]) for i in range(len(held.lists))]
    if _is_whole(held, known, plans, n_kept):
        return 0
    parts = _parts(held, plans, n_kept, sorted({*kept, *new}))
    n_needed = sum(_needed_bytes(plan) for plan in plans)
    n_after = file.n_bytes + sum(part.n_bytes for part in parts)
    if n_after > MOST_GROWTH * n_needed + _CHUNK_BYTES:
        return None
    metadata = {"format": FORMAT, "kept tokens": str(n_kept), **fingerprint}
    return add_to_state(path, file, metadata, parts)


def copy_sequence(
    saved: SavedSequence, path: Path, pools: Sequence[PagePool], n_tokens: int = -1
) -> SavedSequence:
    """Write the first tokens (-1: all) of what was read from a file to another; return them.

    Nothing else that the first file holds goes along. Raises StateFileError if windows let go of
    what they look back at, MachineError if it cannot be stored.
    """
    if 0 < n_tokens < len(saved.tokens):
        saved = saved.first(n_tokens)
        saved.check(pools)
    metadata = {**saved.file.pieces[-1].metadata, "format": FORMAT, "kept tokens": "0"}
    for name in CHECKSUMS:
        metadata.pop(name, None)
    parts = _first_parts(saved.tokens, saved.extras, saved.checkpoints)
    chosen = []
    for i, stored in enumerate(saved.pools):
        listed = np.concatenate([stored.pages, *stored.behind.values()])
        index = {page: at for at, page in enumerate(dict.fromkeys(listed.tolist()))}
        pages = np.array(list(index), np.int32)
        first, *behind = (
            np.array([index[page] for page in each.tolist()], np.int32)
            for each in (stored.pages, *stored.behind.values())
        )
        rows = _cut(stored.rows[pages], saved.end)
        parts += _list_parts(i, rows, first, dict(zip(stored.behind, behind, strict=True)))
        chosen.append(pages)
    for i, (pool, pages) in enumerate(zip(pools, chosen, strict=True)):
        for name, array in layers_of(pool):
            pieces = partial(_stored_rows, saved, i, name, pages)
            parts.append(Part(name, "U8", (len(pages), array.shape[1]), pieces))
    write_state(path, metadata, parts)
    return saved


def _stored_rows(
    saved: SavedSequence, i_pool: int, name: str, pages: NDArray[np.int32]
) -> Iterator[NDArray[np.uint8]]:
    """Yield the bytes of pages by their index in a file."""
    counts = [len(piece.arrays[f"pool.{i_pool}.positions"]) for piece in saved.file.pieces]
    ends = np.cumsum(counts)
    for page in pages.tolist():
        at = int(np.searchsorted(ends, page, side="right"))
        yield saved.file.pieces[at].arrays[name][page - (ends[at] - counts[at])]


# ------------------------------------------------------------- what is in the file already


def _positions_of(held: Held) -> Positions:
    return held.lists[0].in_order()


def _count_same(held: Held, known: SavedSequence) -> int:
    """Return how many first tokens, with their positions, the file holds too."""
    n = min(len(held.tokens), len(known.tokens))
    same = (held.tokens[:n] == known.tokens[:n]) & (_positions_of(held)[:n] == known.positions[:n])
    return n if same.all() else int(np.argmin(same))


def _end_of_same(held: Held, known: SavedSequence, n_same: int) -> int:
    """Return the first position at which the file and the sequence differ."""
    ends = [each[n_same] for each in (_positions_of(held), known.positions) if len(each) > n_same]
    return int(min(ends, default=NO_END))


def _is_whole(held: Held, known: SavedSequence, plans: Sequence[_PoolPlan], n_kept: int) -> bool:
    """Return whether the file holds the same already."""
    is_same = n_kept == len(held.tokens) == len(known.tokens)
    is_same &= {n for n, _ in held.behind} <= set(known.checkpoints)
    is_same &= not any(plan.n_bytes for plan in plans)
    extras = known.extras
    return is_same and all(
        name in extras and np.array_equal(extras[name], held.extras[name], equal_nan=True)
        for name in held.extras
    )


def _plan(
    held: Held, i: int, known: SavedSequence | None, end: int, kept: Mapping[int, Positions]
) -> _PoolPlan:
    """Return which pages of a pool to write, the file holding `known` up to position `end`.

    `kept` are the pages of checkpoints that the file goes on to have.
    """
    places: dict[bytes, int] = {}
    n_there = 0
    if known is not None:
        stored = known.pools[i]
        n_there = len(stored.rows)
        listed = [stored.pages, *stored.behind.values()]
        for at in np.unique(np.concatenate(listed)).tolist():
            if stored.rows[at].max() < end:
                places[stored.rows[at].tobytes()] = at
    one = held.lists[i]
    written: list[int] = []
    rows: list[Positions] = []

    def index(row: Positions, page: int) -> int:
        key = row.tobytes()
        if key not in places:
            places[key] = n_there + len(written)
            written.append(page)
            rows.append(row)
        return places[key]

    pages = [index(*each) for each in zip(one.visible(), one.pages.tolist(), strict=True)]
    behind = dict(kept)
    for n_tokens, lists in held.behind if one.pool.shape.window else ():
        other = lists[i]
        for key, at in list(places.items()):
            cut = _cut(np.frombuffer(key, np.int32), other.pos_max + 1)
            places.setdefault(cut.tobytes(), at)
        each_page = zip(other.visible(), other.pages.tolist(), strict=True)
        behind[n_tokens] = np.array([index(*each) for each in each_page], np.int32)
    return _PoolPlan(
        one,
        np.array(written, np.int32),
        np.array(rows, np.int32).reshape(-1, one.pool.positions.shape[1]),
        np.array(pages, np.int32),
        behind,
    )


def _cut(row: Positions, end: int) -> Positions:
    return np.where(row < end, row, EMPTY)


def _needed_bytes(plan: _PoolPlan) -> int:
    listed = np.concatenate([plan.pages, *plan.behind.values()])
    return len(np.unique(listed)) * plan.one.pool.page_bytes


# ------------------------------------------------------------- the arrays of a piece


def _parts(
    held: Held, plans: Sequence[_PoolPlan], n_kept: int, checkpoints: Sequence[int]
) -> list[Part]:
    parts = _first_parts(held.tokens[n_kept:], held.extras, checkpoints)
    for i, plan in enumerate(plans):
        parts += _list_parts(i, plan.rows, plan.pages, plan.behind)
    for plan in plans:
        for name, array in layers_of(plan.one.pool):
            shape = (len(plan.written), array.shape[1])
            parts.append(Part(name, "U8", shape, partial(_stretches, array, plan.written)))
    return parts


def _first_parts(
    tokens: NDArray[np.int32],
    extras: Mapping[str, NDArray[np.float32]],
    checkpoints: Sequence[int],
) -> list[Part]:
    parts = [Part.of("tokens", "I32", tokens)]
    parts += [Part.of(EXTRA + name, "F32", extra) for name, extra in extras.items()]
    if checkpoints:
        parts.append(Part.of("checkpoints", "I32", np.array(checkpoints, np.int32)))
    return parts


def _list_parts(
    i: int, rows: Positions, pages: Positions, behind: Mapping[int, Positions]
) -> list[Part]:
    lists = {"positions": rows, "pages": pages}
    lists |= {f"behind.{n}": listed for n, listed in behind.items()}
    return [Part.of(f"pool.{i}.{name}", "I32", array) for name, array in lists.items()]


def _stretches(array: NDArray[np.uint8], pages: NDArray[np.int32]) -> Iterator[NDArray[np.uint8]]:
    """Yield the rows of some pages in order: neighbours together, without a copy."""
    most = max(1, _CHUNK_BYTES // max(1, array.shape[1]))
    start = 0
    for at in [*(np.flatnonzero(np.diff(pages) != 1) + 1).tolist(), len(pages)]:
        while start < at:
            end = min(at, start + most)
            yield array[pages[start] : pages[start] + end - start]
            start = end
