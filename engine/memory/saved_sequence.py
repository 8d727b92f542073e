"""One sequence of a memory to a file and back: its tokens, positions, and pages of K and V."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.compute.cpu.signatures import PAGE_CELLS
from engine.errors import StateFileError
from engine.memory.page_list import NO_END, PageList
from engine.memory.page_pool import EMPTY, PagePool
from engine.memory.state_file import Part, State, read_state, write_state

if TYPE_CHECKING:
    from engine.memory.memory import Memory

FORMAT = "inglenook sequence 2"
_PIECE_BYTES = 4 << 20
_EXTRA = "extra."


@dataclass(frozen=True)
class SavedSequence:
    """A file that has been read and found whole and fitting; its arrays are mapped, not read."""

    tokens: NDArray[np.int32]
    state: State

    @property
    def extras(self) -> dict[str, NDArray[np.float32]]:
        """What its owner gave along when it was written: arrays f32 by name."""
        found = self.state.arrays.items()
        return {
            name.removeprefix(_EXTRA): array
            for name, array in found
            if name.startswith(_EXTRA) and array.dtype == np.float32
        }


def write_sequence(
    path: Path,
    fingerprint: Mapping[str, str],
    tokens: NDArray[np.int32],
    lists: Sequence[PageList],
    extras: Mapping[str, NDArray[np.float32]] = MappingProxyType({}),
) -> None:
    """Write what lists of pages hold; `fingerprint` says which model and memory it fits.

    `extras` are arrays f32 of the owner's, given back with the rest.

    Nobody may change the lists or their pages meanwhile, and no cell may wait for a shift.
    Raises MachineError if the file cannot be stored.
    """
    parts = [Part("tokens", "I32", tokens.shape, lambda: [tokens])]
    for name, extra in extras.items():
        parts.append(Part(_EXTRA + name, "F32", extra.shape, lambda a=extra: [a]))  # type: ignore[misc]
    for i, one in enumerate(lists):
        shown = one.visible()
        parts.append(Part(f"pool.{i}.positions", "I32", shown.shape, lambda a=shown: [a]))  # type: ignore[misc]
        for name, array in _layers(one.pool):
            shape = (one.n_pages, array.shape[1])
            pieces = lambda a=array, p=one.pages: _stretches(a, p)  # noqa: E731
            parts.append(Part(name, "U8", shape, pieces))
    write_state(path, {"format": FORMAT, **fingerprint}, parts)


def _stretches(array: NDArray[np.uint8], pages: NDArray[np.int32]) -> Iterator[NDArray[np.uint8]]:
    """Yield the rows of some pages in order: neighbours together, without a copy."""
    most = max(1, _PIECE_BYTES // max(1, array.shape[1]))
    start = 0
    for at in [*(np.flatnonzero(np.diff(pages) != 1) + 1).tolist(), len(pages)]:
        while start < at:
            end = min(at, start + most)
            yield array[pages[start] : pages[start] + end - start]
            start = end


def read_sequence(
    path: Path, fingerprint: Mapping[str, str], pools: Sequence[PagePool], n_vocab: int
) -> SavedSequence:
    """Read a file and hold it against itself, its checksum, the model and the kind of memory.

    Changes nothing. Raises StateFileError with the reason if it does not fit.
    """
    state = read_state(path)
    tokens = _tokens(state, fingerprint, n_vocab)
    whole = _check_positions(state, 0)
    if len(whole) != len(tokens):
        raise StateFileError("The saved memory is damaged: its tokens and positions differ.")
    for i, pool in enumerate(pools):
        _check_window(whole, _check_positions(state, i), pool.shape.window)
        _check_layers(state, pool, len(state.arrays[f"pool.{i}.positions"]))
    return SavedSequence(np.array(tokens), state)


def peek_tokens(path: Path, fingerprint: Mapping[str, str], n_vocab: int) -> list[int]:
    """Return the tokens of a file that fits, without reading its pages.

    Raises StateFileError with the reason; what is altered in the pages is not found here.
    """
    return _tokens(read_state(path, verifies=False), fingerprint, n_vocab).tolist()


def restore_sequence(memory: "Memory", seq_id: int, saved: SavedSequence) -> None:
    """Replace a sequence by a saved one.

    Raises StateFileError, the memory unchanged, if it does not fit beside the other sequences.
    """
    state, tokens = saved.state, saved.tokens
    lists = memory.lists[seq_id]
    memory.let_go()
    _check_room(memory, seq_id, len(tokens), state)
    memory.seq_rm(seq_id, 0, NO_END)
    for i, one in enumerate(lists):
        positions = state.arrays[f"pool.{i}.positions"]
        ids = one.adopt(positions, tokens[len(tokens) - np.count_nonzero(positions != EMPTY) :])
        for name, array in _layers(one.pool):
            array[ids] = state.arrays[name]


def _layers(pool: PagePool) -> list[tuple[str, NDArray[np.uint8]]]:
    """Return the K and V of every layer of a pool, by their names in the file."""
    named = []
    for layer, k, v in zip(pool.layer_ids, pool.k, pool.v, strict=True):
        named += [(f"layer.{layer}.k", k), (f"layer.{layer}.v", v)]
    return named


def _check_fingerprint(state: State, expected: Mapping[str, str]) -> None:
    for name, value in expected.items():
        found = state.metadata.get(name, "")
        if found != value:
            raise StateFileError(
                f"The saved memory does not fit: its {name} is “{found[:60]}”, here it is "
                f"“{value[:60]}”. The conversation will be read again."
            )


def _tokens(state: State, fingerprint: Mapping[str, str], n_vocab: int) -> NDArray[np.int32]:
    _check_fingerprint(state, {"format": FORMAT, **fingerprint})
    tokens = _array(state, "tokens", np.int32, 1)
    if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < n_vocab:
        raise StateFileError("The saved memory names tokens that the model does not have.")
    return tokens


def _array(state: State, name: str, dtype: type, n_dims: int) -> NDArray:
    array = state.arrays.get(name)
    if array is None or array.dtype != dtype or array.ndim != n_dims:
        raise StateFileError(f"The saved memory is damaged: it lacks its “{name}”.")
    return array


def _check_positions(state: State, i: int) -> NDArray[np.int32]:
    """Return the positions of a pool's cells, in order."""
    positions = _array(state, f"pool.{i}.positions", np.int32, 2)
    if positions.shape[1] == PAGE_CELLS:
        used = positions[positions != EMPTY]
        has_cells = bool((positions != EMPTY).any(axis=1).all())
        if has_cells and (np.diff(used) >= 0).all() and (used >= 0).all() and (used < NO_END).all():
            return used
    raise StateFileError("The saved memory is damaged: its positions are in disorder.")


def _check_window(whole: NDArray[np.int32], shown: NDArray[np.int32], window: int) -> None:
    """Hold the cells of a pool against those of the whole sequence, of which it has the last."""
    n_lost = len(whole) - len(shown)
    is_good = n_lost >= 0 and np.array_equal(whole[n_lost:], shown)
    if not is_good or (n_lost and (not window or whole[n_lost - 1] > whole[-1] + 1 - window)):
        raise StateFileError("The saved memory is damaged: its layers remember different cells.")


def _check_layers(state: State, pool: PagePool, n_pages: int) -> None:
    for name, array in _layers(pool):
        stored = _array(state, name, np.uint8, 2)
        if stored.shape != (n_pages, array.shape[1]):
            raise StateFileError(f"The saved memory is damaged: “{name}” has another shape.")


def _check_room(memory: "Memory", seq_id: int, n_tokens: int, state: State) -> None:
    """Refuse what would not fit even after the sequence has given its own pages up."""
    for i, one in enumerate(memory.lists[seq_id]):
        own = int(np.count_nonzero(one.pool.references[one.pages] == 1))
        is_too_long = n_tokens > memory.n_ctx
        if is_too_long or len(state.arrays[f"pool.{i}.positions"]) > one.pool.n_free + own:
            raise StateFileError(
                f"The saved memory of {n_tokens} tokens does not fit: the context holds "
                f"{memory.n_ctx}, shared with other conversations. Open a larger context."
            )
