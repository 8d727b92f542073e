"""Batch: the tokens of one decode, checked, and ordered so that a sequence is in one stretch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import InternalError, RequestError
from engine.memory import Memory, Segment

MAX_POSITION = (1 << 31) - 2
Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Batch:
    """Rows grouped by sequence. `outputs` are the wanted rows, rising and distinct.

    `order` lays logits of `outputs` out as they were asked for; None when that is the same.
    """

    tokens: Ints
    positions: Ints
    segments: tuple[Segment, ...]
    outputs: Ints
    order: NDArray[np.int64] | None

    def pieces(self, n_max: int) -> Iterator[tuple["Batch", slice]]:
        """Yield the batch in pieces of at most n_max rows, and the outputs that each one has."""
        if len(self.tokens) <= n_max:
            yield self, slice(0, len(self.outputs))
            return
        for start in range(0, len(self.tokens), n_max):
            end = min(start + n_max, len(self.tokens))
            first, last = np.searchsorted(self.outputs, (start, end)).tolist()
            segments = tuple(
                Segment(
                    one.seq_id, max(one.first_row, start) - start, min(one.end_row, end) - start
                )
                for one in self.segments
                if one.first_row < end and one.end_row > start
            )
            rows, outputs = slice(start, end), self.outputs[first:last] - start
            piece = Batch(self.tokens[rows], self.positions[rows], segments, outputs, None)
            yield piece, slice(first, last)


def make_batch(
    tokens: Any, positions: Any, seq_ids: Any, want: Any, memory: Memory, n_vocab: int
) -> Batch:
    """Check what a caller gave to `Context.decode` and bring it into order.

    Raises RequestError for ids, positions, sequences or rows that cannot be.
    """
    ids = _token_ids(tokens, n_vocab)
    n = len(ids)
    wanted = _wanted_rows(want, n)
    is_one = isinstance(seq_ids, Integral)
    sequences = np.array([seq_ids]) if is_one else _per_row(seq_ids, "sequence ids", n)
    if is_one or (sequences == sequences[0]).all():
        seq_id = int(sequences[0])
        places = _positions_of(seq_id, 0, n, positions, None, memory)
        segments = (Segment(seq_id, 0, n),)
        return Batch(ids, places, segments, *_in_rows(wanted, None))
    order = np.argsort(sequences, kind="stable")
    grouped = sequences[order]
    starts = np.flatnonzero(np.diff(grouped, prepend=grouped[0] - 1))
    ends = [*starts[1:].tolist(), n]
    places = np.empty(n, np.int32)
    found = []
    for start, end in zip(starts.tolist(), ends, strict=True):
        seq_id = int(grouped[start])
        places[start:end] = _positions_of(seq_id, start, end, positions, order, memory)
        found.append(Segment(seq_id, start, end))
    return Batch(ids[order], places, tuple(found), *_in_rows(wanted, order))


def make_passing_batch(tokens: Any, memory: Memory, n_vocab: int) -> Batch:
    """Return a batch of the spare sequence, every row wanted; RequestError as `make_batch`."""
    ids = _token_ids(tokens, n_vocab)
    rows = np.arange(len(ids), dtype=np.int32)
    return Batch(ids, rows, (Segment(memory.spare, 0, len(ids)),), rows, None)


def passing_piece(tokens: Ints, start: int, rows: Ints, memory: Memory) -> Batch:
    """Return a batch of checked tokens that goes on in the spare sequence at position `start`.

    Raises InternalError if something else has been read there since.
    """
    if memory.lists[memory.spare][0].n_cells != start:
        raise InternalError("Two texts were to be read in passing at the same time.")
    positions = np.arange(start, start + len(tokens), dtype=np.int32)
    return Batch(tokens, positions, (Segment(memory.spare, 0, len(tokens)),), rows, None)


def _token_ids(tokens: Any, n_vocab: int) -> Ints:
    ids = _int_array(tokens, "token ids", n_vocab)
    if not len(ids):
        raise RequestError("There is nothing to decode: the list of tokens is empty.")
    return ids


def _positions_of(
    seq_id: int,
    start: int,
    end: int,
    positions: Any,
    order: NDArray[np.int64] | None,
    memory: Memory,
) -> Ints:
    """Return the positions of the rows of one sequence, which must go on where it stands."""
    due = memory.seq_pos_max(seq_id) + 1
    n = end - start
    if positions is None:
        first = due
    else:
        n_all = n if order is None else len(order)
        given = _per_row(positions, "positions", n_all)
        mine = given if order is None else given[order[start:end]]
        first = int(mine[0])
        if due and first != due:
            raise RequestError(
                f"Sequence {seq_id} goes on at position {due}, not at {first}: remove what "
                "stands behind, or give the next positions."
            )
        if (np.diff(mine) != 1).any():
            raise RequestError(f"The positions of sequence {seq_id} have gaps or repeat.")
    if first + n - 1 > MAX_POSITION:
        raise RequestError(f"Positions end at {MAX_POSITION}.")
    return np.arange(first, first + n, dtype=np.int32)


def _wanted_rows(want: Any, n: int) -> NDArray[np.int64]:
    """Return the wanted rows in the order asked for."""
    if isinstance(want, str):
        if want == "last":
            return np.array([n - 1])
        if want == "all":
            return np.arange(n)
        raise RequestError(f"want may be “last”, “all” or a list of rows, not “{want[:40]}”.")
    rows = np.asarray(want)
    if not rows.size:
        return np.empty(0, np.int64)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n:
        raise RequestError(f"The wanted rows must be whole numbers from 0 to {n - 1}.")
    return rows.astype(np.int64)


def _in_rows(
    wanted: NDArray[np.int64], order: NDArray[np.int64] | None
) -> tuple[Ints, NDArray[np.int64] | None]:
    """Return the wanted rows as places in the ordered batch, rising, and how to lay them out."""
    places = wanted if order is None else np.argsort(order)[wanted]
    if len(places) < 2 or (np.diff(places) > 0).all():
        return places.astype(np.int32), None
    rows, layout = np.unique(places, return_inverse=True)
    return rows.astype(np.int32), layout


def _per_row(values: Any, what: str, n: int) -> Ints:
    array = _int_array(values, what, MAX_POSITION + 1)
    if len(array) != n:
        raise RequestError(f"There are {n} tokens but {len(array)} {what}.")
    return array


def _int_array(values: Any, what: str, end: int) -> Ints:
    """Return whole numbers from 0 to end - 1 as an array."""
    try:
        array = np.asarray(values if not isinstance(values, Sequence) else list(values))
    except (TypeError, ValueError, OverflowError) as error:
        raise RequestError(f"The {what} must be a list of whole numbers.") from error
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise RequestError(f"The {what} must be a list of whole numbers.")
    if array.size and (array.min() < 0 or array.max() >= end):
        wrong = int(array.min()) if array.min() < 0 else int(array.max())
        raise RequestError(f"The {what} must be from 0 to {end - 1}, but there is {wrong}.")
    return array.astype(np.int32)
