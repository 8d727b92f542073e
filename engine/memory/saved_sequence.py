"""One sequence of a memory to a file and back: its tokens, positions, and pages of K and V."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.compute.cpu.signatures import PAGE_CELLS
from engine.errors import StateFileError
from engine.memory.memory import NO_END, Memory
from engine.memory.page_list import PageList
from engine.memory.page_pool import EMPTY
from engine.memory.state_file import Part, State, read_state, write_state

FORMAT = "inglenook sequence 1"


def save_sequence(memory: Memory, seq_id: int, path: Path, fingerprint: Mapping[str, str]) -> None:
    """Write a sequence to a file; `fingerprint` says which model and memory it fits.

    No cell may wait for a shift. Raises MachineError if the file cannot be stored.
    """
    lists = memory.lists[seq_id]
    tokens = np.array(memory.tokens(seq_id), np.int32)
    parts = [Part("tokens", "I32", tokens.shape, lambda: tokens)]
    for i, one in enumerate(lists):
        shape = (one.n_pages, PAGE_CELLS)
        parts.append(Part(f"pool.{i}.positions", "I32", shape, one.visible))
        for name, array in _layers(one):
            pages = one.pages
            shape = (one.n_pages, array.shape[1])
            parts.append(Part(name, "U8", shape, lambda a=array, p=pages: a[p]))  # type: ignore[misc]
    write_state(path, {"format": FORMAT, **fingerprint}, parts)


def restore_sequence(
    memory: Memory, seq_id: int, path: Path, fingerprint: Mapping[str, str], n_vocab: int
) -> list[int]:
    """Replace a sequence by a saved one and return its tokens.

    Raises StateFileError, the memory unchanged, for a file that is damaged, that another model or
    another kind of memory wrote, or that does not fit.
    """
    state = read_state(path)
    _check_fingerprint(state, {"format": FORMAT, **fingerprint})
    tokens = _array(state, "tokens", np.int32, 1)
    if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < n_vocab:
        raise StateFileError("The saved memory names tokens that the model does not have.")
    lists = memory.lists[seq_id]
    for i, one in enumerate(lists):
        _check_positions(_array(state, f"pool.{i}.positions", np.int32, 2), len(tokens))
        _check_layers(state, one, len(state.arrays[f"pool.{i}.positions"]))
    _check_room(memory, seq_id, len(tokens), state)
    memory.seq_rm(seq_id, 0, NO_END)
    for i, one in enumerate(lists):
        ids = one.adopt(state.arrays[f"pool.{i}.positions"], tokens)
        for name, array in _layers(one):
            array[ids] = state.arrays[name]
    return tokens.tolist()


def _layers(one: PageList) -> list[tuple[str, NDArray[np.uint8]]]:
    """Return the K and V of every layer of a list's pool, by their names in the file."""
    named = []
    for layer, k, v in zip(one.pool.layer_ids, one.pool.k, one.pool.v, strict=True):
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


def _array(state: State, name: str, dtype: type, n_dims: int) -> NDArray:
    array = state.arrays.get(name)
    if array is None or array.dtype != dtype or array.ndim != n_dims:
        raise StateFileError(f"The saved memory is damaged: it lacks its “{name}”.")
    return array


def _check_positions(positions: NDArray[np.int32], n_tokens: int) -> None:
    used = positions[positions != EMPTY] if positions.shape[1] == PAGE_CELLS else None
    is_good = used is not None and len(used) == n_tokens
    if used is not None and is_good and n_tokens:
        rises = bool((np.diff(used) >= 0).all() and used[0] >= 0 and used[-1] < NO_END)
        is_good = rises and bool((positions != EMPTY).any(axis=1).all())
    if not is_good or (n_tokens == 0 and len(positions)):
        raise StateFileError("The saved memory is damaged: its positions are in disorder.")


def _check_layers(state: State, one: PageList, n_pages: int) -> None:
    for name, array in _layers(one):
        stored = _array(state, name, np.uint8, 2)
        if stored.shape != (n_pages, array.shape[1]):
            raise StateFileError(f"The saved memory is damaged: “{name}” has another shape.")


def _check_room(memory: Memory, seq_id: int, n_tokens: int, state: State) -> None:
    """Refuse what would not fit even after the sequence has given its own pages up."""
    for i, one in enumerate(memory.lists[seq_id]):
        own = int(np.count_nonzero(one.pool.references[one.pages] == 1))
        is_too_long = n_tokens > memory.n_ctx
        if is_too_long or len(state.arrays[f"pool.{i}.positions"]) > one.pool.n_free + own:
            raise StateFileError(
                f"The saved memory of {n_tokens} tokens does not fit: the context holds "
                f"{memory.n_ctx}, shared with other conversations. Open a larger context."
            )
