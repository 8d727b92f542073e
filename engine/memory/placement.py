"""Placement: which cells the rows of a batch got, and which pages each row reads."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.memory.page_list import PageList, Positions


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


def run_table(
    lists: Sequence[PageList], i_pool: int, placement: Placement, rows: Positions
) -> NDArray[np.int64]:
    """Return the runs of some rows (rising) for one pool: int64[n_runs, 4].

    `lists` are those of the pool, by sequence. Per run: its first row (an index into `rows`), its
    number of rows, the address of its page ids and their number. The addresses stay good until
    the next operation on the memory.
    """
    found = []
    for segment in placement.segments:
        first, end = 0, len(rows)
        if len(placement.segments) > 1:
            first, end = np.searchsorted(rows, (segment.first_row, segment.end_row)).tolist()
        if first == end:
            continue
        pages = lists[segment.seq_id]
        window = pages.pool.shape.window
        n_pages = int(placement.page_indices[i_pool][rows[end - 1]]) + 1
        pos = int(placement.positions[rows[first]])
        skipped = pages.skip_passed(pos - window + 1) if window else 0
        found.append((first, end - first, pages.address + 4 * skipped, n_pages - skipped))
    return np.array(found, np.int64).reshape(-1, 4)
