"""One sequence out of a file: its tokens, positions, and pages of K and V, held against a memory.

Each piece of a file brings pages of its own and says of which pages, its own and those of the
pieces before, the sequence is made now. Where layers have a window it says so for checkpoints too:
the sequence as it was some tokens before its end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.compute.cpu.signatures import PAGE_CELLS
from engine.errors import StateFileError
from engine.memory.page_list import NO_END, Positions
from engine.memory.page_pool import EMPTY, PagePool
from engine.memory.state_file import StateFile, read_state
from engine.memory.state_piece import Piece

if TYPE_CHECKING:
    from engine.memory.memory import Memory

FORMAT = "inglenook sequence 3"
OLD_FORMAT = "inglenook sequence 2"  # one piece, without lists of pages
MODEL_NAME = "model name"  # not compared: what a person is told
EXTRA = "extra."
MAX_CHECKPOINTS = 64
# What a person is told of that which differs.
_WORDS = {
    "memory type": "type of K and V",
    "rotation": "setting of positions",
    "page layout": "layout of pages",
}


@dataclass(frozen=True)
class StoredPool:
    """The pages of one pool in a file, and which of them a sequence shows, by their index.

    `rows` int32[n, 32] are the positions of each page's cells, -1 = empty; `behind` are the pages
    of each checkpoint, by its tokens, where they are not the first ones of the sequence.
    """

    rows: Positions
    pages: Positions
    behind: Mapping[int, Positions] = field(default_factory=dict)


@dataclass(frozen=True)
class SavedSequence:
    """A file that has been read and found whole and fitting; its arrays are mapped, not read.

    `checkpoints` are the numbers of tokens that one can go back to, rising, where layers have a
    window. Positions from `end` on do not belong to it.
    """

    tokens: NDArray[np.int32]
    file: StateFile
    pools: tuple[StoredPool, ...]
    checkpoints: tuple[int, ...] = ()
    end: int = NO_END

    @property
    def extras(self) -> dict[str, NDArray[np.float32]]:
        """What its owner gave along when it was written: arrays f32 by name."""
        found = self.file.pieces[-1].arrays.items()
        return {
            name.removeprefix(EXTRA): array
            for name, array in found
            if name.startswith(EXTRA) and array.dtype == np.float32
        }

    def shown(self, i_pool: int) -> Positions:
        """Return the positions of a pool's cells, int32[n_pages, 32], -1 where none is shown."""
        pool = self.pools[i_pool]
        rows = pool.rows[pool.pages]
        return np.where(rows < self.end, rows, EMPTY)

    @cached_property
    def positions(self) -> Positions:
        """The position of each token."""
        shown = self.shown(0)
        return shown[shown != EMPTY]

    def first(self, n_tokens: int) -> "SavedSequence":
        """Return the sequence of the first tokens, one at least.

        Where windows have let go of what these look back at, it is one that `check` refuses.
        """
        if n_tokens >= len(self.tokens):
            return self
        end = int(self.positions[n_tokens - 1]) + 1
        return replace(
            self,
            tokens=self.tokens[:n_tokens],
            pools=tuple(_first_pages(pool, end, n_tokens) for pool in self.pools),
            checkpoints=tuple(n for n in self.checkpoints if n < n_tokens),
            end=end,
        )

    def check(self, pools: Sequence[PagePool]) -> None:
        """Hold the lists of the sequence against those of a memory; raises StateFileError."""
        for i, pool in enumerate(pools):
            _check_order(self.shown(i))
            _check_window(self, i, pool.shape.window)


def _first_pages(pool: StoredPool, end: int, n_tokens: int) -> StoredPool:
    pages = pool.behind.get(n_tokens, pool.pages)
    rows = pool.rows[pages]
    behind = {n: listed for n, listed in pool.behind.items() if n < n_tokens}
    return StoredPool(pool.rows, pages[((rows != EMPTY) & (rows < end)).any(axis=1)], behind)


# ------------------------------------------------------------- reading


def read_sequence(
    path: Path, fingerprint: Mapping[str, str], pools: Sequence[PagePool], n_vocab: int
) -> SavedSequence:
    """Read a file and hold it against itself, its checksums, the model and the kind of memory.

    Changes nothing. Raises StateFileError with the reason if it does not fit.
    """
    saved = compose(read_state(path), fingerprint, n_vocab, len(pools))
    for n_tokens in (len(saved.tokens), *saved.checkpoints):
        saved.first(n_tokens).check(pools)
    for piece in saved.file.pieces:
        for i, pool in enumerate(pools):
            _check_layers(piece, pool, len(piece.arrays[f"pool.{i}.positions"]))
    return saved


def peek_sequence(path: Path, fingerprint: Mapping[str, str], n_vocab: int) -> SavedSequence:
    """Return the tokens of a file that fits, and its checkpoints, without reading its pages.

    Raises StateFileError with the reason; what is altered in the pages is not found here.
    """
    return compose(read_state(path, verifies=False), fingerprint, n_vocab, 0)


def compose(
    file: StateFile, fingerprint: Mapping[str, str], n_vocab: int, n_pools: int
) -> SavedSequence:
    """Return the sequence that the pieces of a file make, with the lists of `n_pools` pools.

    Raises StateFileError if it is of another model or contradicts itself.
    """
    tokens = np.empty(0, np.int32)
    for piece in file.pieces:
        _check_fingerprint(piece, fingerprint)
        tokens = _follow(tokens, piece)
    if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < n_vocab:
        raise StateFileError("The saved memory names tokens that the model does not have.")
    checkpoints = _checkpoints(file.pieces[-1], len(tokens))
    pools = tuple(_stored_pool(file, i, checkpoints) for i in range(n_pools))
    saved = SavedSequence(tokens, file, pools, checkpoints)
    if n_pools and len(saved.positions) != len(tokens):
        raise StateFileError("The saved memory is damaged: its tokens and positions differ.")
    return saved


def _follow(tokens: NDArray[np.int32], piece: Piece) -> NDArray[np.int32]:
    """Return the tokens behind a piece, which keeps some of those before it."""
    kept = piece.metadata.get("kept tokens", "0")
    n_kept = int(kept) if kept.isascii() and kept.isdigit() and len(kept) < 12 else -1
    if not 0 <= n_kept <= len(tokens):
        raise StateFileError("The saved memory is damaged: a piece goes on from nowhere.")
    return np.concatenate([tokens[:n_kept], _array(piece, "tokens", np.int32, 1)])


def _checkpoints(piece: Piece, n_tokens: int) -> tuple[int, ...]:
    if "checkpoints" not in piece.arrays:
        return ()
    found = _array(piece, "checkpoints", np.int32, 1)
    steps = np.diff(found, prepend=np.int32(0), append=np.int32(n_tokens + 1))
    if len(found) > MAX_CHECKPOINTS or not (steps > 0).all():
        raise StateFileError("The saved memory is damaged: its checkpoints are not in it.")
    return tuple(found.tolist())


def _stored_pool(file: StateFile, i: int, checkpoints: Sequence[int]) -> StoredPool:
    rows = [_array(piece, f"pool.{i}.positions", np.int32, 2) for piece in file.pieces]
    if any(each.shape[1] != PAGE_CELLS for each in rows):
        raise StateFileError("The saved memory is damaged: its positions are in disorder.")
    together = np.concatenate(rows)
    last, name = file.pieces[-1], f"pool.{i}.pages"
    pages = np.arange(len(together), dtype=np.int32)
    if last.metadata["format"] != OLD_FORMAT:
        pages = _array(last, name, np.int32, 1)
    names = {n: f"pool.{i}.behind.{n}" for n in checkpoints}
    behind = {
        n: _array(last, name, np.int32, 1) for n, name in names.items() if name in last.arrays
    }
    for chosen in (pages, *behind.values()):
        if len(chosen) > len(together):
            raise StateFileError("The saved memory is damaged: it lists a page twice.")
        if len(chosen):
            if not 0 <= int(chosen.min()) <= int(chosen.max()) < len(together):
                raise StateFileError("The saved memory is damaged: it lists a page that is none.")
    return StoredPool(together, pages, behind)


def _array(piece: Piece, name: str, dtype: type, n_dims: int) -> NDArray:
    array = piece.arrays.get(name)
    if array is None or array.dtype != dtype or array.ndim != n_dims:
        raise StateFileError(f"The saved memory is damaged: it lacks its “{name}”.")
    return array


# ------------------------------------------------------------- checking


def _check_fingerprint(piece: Piece, expected: Mapping[str, str]) -> None:
    found = piece.metadata
    if found.get("format") not in (FORMAT, OLD_FORMAT):
        _refuse("format", found.get("format", ""), FORMAT)
    for name in sorted(expected, key=lambda name: name not in ("architecture", "model")):
        if name == MODEL_NAME or found.get(name, "") == expected[name]:
            continue
        of_models = found.get(MODEL_NAME), expected.get(MODEL_NAME)
        if name in ("architecture", "model") and of_models[0] != of_models[1] and all(of_models):
            _refuse("model", str(of_models[0]), str(of_models[1]))
        _refuse(name, found.get(name, ""), expected[name])


def _refuse(name: str, found: str, expected: str) -> None:
    raise StateFileError(
        f"The saved memory does not fit: its {_WORDS.get(name, name)} is “{found[:60]}”, here it "
        f"is “{expected[:60]}”. The conversation will be read again."
    )


def _check_order(shown: Positions) -> None:
    """Hold the cells of a list against each other: every page shows some, and they rise."""
    used = shown[shown != EMPTY]
    has_cells = bool((shown != EMPTY).any(axis=1).all())
    if has_cells and (np.diff(used) >= 0).all() and (used >= 0).all() and (used < NO_END).all():
        return
    raise StateFileError("The saved memory is damaged: its positions are in disorder.")


def _check_window(saved: SavedSequence, i_pool: int, window: int) -> None:
    """Hold the cells of a pool against those of the whole sequence, of which it has the last."""
    whole, shown = saved.positions, saved.shown(i_pool)
    shown = shown[shown != EMPTY]
    n_lost = len(whole) - len(shown)
    is_good = n_lost >= 0 and np.array_equal(whole[n_lost:], shown)
    if not is_good or (n_lost and (not window or whole[n_lost - 1] > whole[-1] + 1 - window)):
        raise StateFileError("The saved memory is damaged: its layers remember different cells.")


def _check_layers(piece: Piece, pool: PagePool, n_pages: int) -> None:
    for name, array in layers_of(pool):
        stored = _array(piece, name, np.uint8, 2)
        if stored.shape != (n_pages, array.shape[1]):
            raise StateFileError(f"The saved memory is damaged: “{name}” has another shape.")


def layers_of(pool: PagePool) -> list[tuple[str, NDArray[np.uint8]]]:
    """Return the K and V of every layer of a pool, by their names in the file."""
    named = []
    for layer, k, v in zip(pool.layer_ids, pool.k, pool.v, strict=True):
        named += [(f"layer.{layer}.k", k), (f"layer.{layer}.v", v)]
    return named


# ------------------------------------------------------------- restoring


def restore_sequence(memory: "Memory", seq_id: int, saved: SavedSequence) -> None:
    """Replace a sequence by a saved one.

    Raises StateFileError, the memory unchanged, if it does not fit beside the other sequences.
    """
    lists = memory.lists[seq_id]
    memory.let_go()
    _check_room(memory, seq_id, saved)
    memory.seq_rm(seq_id, 0, NO_END)
    for i, one in enumerate(lists):
        shown = saved.shown(i)
        n_cells = int(np.count_nonzero(shown != EMPTY))
        ids = one.adopt(shown, saved.tokens[len(saved.tokens) - n_cells :])
        start = 0
        for piece in saved.file.pieces:
            end = start + len(piece.arrays[f"pool.{i}.positions"])
            mine = (saved.pools[i].pages >= start) & (saved.pools[i].pages < end)
            chosen = saved.pools[i].pages[mine] - start
            is_stretch = len(chosen) and bool((np.diff(chosen) == 1).all())
            rows = slice(chosen[0], chosen[-1] + 1) if is_stretch else chosen  # a view, no copy
            for name, array in layers_of(one.pool) if len(chosen) else ():
                array[ids[mine]] = piece.arrays[name][rows]
            start = end


def _check_room(memory: "Memory", seq_id: int, saved: SavedSequence) -> None:
    """Refuse what would not fit even after the sequence has given its own pages up."""
    n_tokens = len(saved.tokens)
    for i, one in enumerate(memory.lists[seq_id]):
        own = int(np.count_nonzero(one.pool.references[one.pages] == 1))
        is_too_long = n_tokens > memory.n_ctx
        if is_too_long or len(saved.pools[i].pages) > one.pool.n_free + own:
            raise StateFileError(
                f"The saved memory of {n_tokens} tokens does not fit: the context holds "
                f"{memory.n_ctx}, shared with other conversations. Open a larger context."
            )
