"""Whether windows still hold all that the next token looks back at, after a change of positions.

A list with a window holds the last cells of its sequence; those before have been given up when
nothing could see them any more. Going back, or moving them into sight, would need them again.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.memory.page_list import PageList

Positions = NDArray[np.int32]


def counts_lost(lists: Sequence[PageList]) -> list[int]:
    """Return how many of a sequence's first cells each of its lists has given up."""
    return [lists[0].n_cells - one.n_cells for one in lists]


def windows_hold(lists: Sequence[PageList], lost: Sequence[int], after: Positions) -> bool:
    """Return whether the next token would find everything in its windows.

    `after` are the positions that the cells of the sequence will have, rising, -1 where forgotten;
    `lost` how many of the first ones each list does not have.
    """
    left = after[after >= 0]
    if not len(left):
        return True
    end = int(left[-1]) + 1
    for one, n in zip(lists, lost, strict=True):
        missing = after[:n]
        if one.pool.shape.window and (missing > end - one.pool.shape.window).any():
            return False
    return True
