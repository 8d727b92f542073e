"""Token rows to one embedding."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from engine.errors import RequestError, nearest

Rows = NDArray[np.float32]

POOLINGS: dict[str, Callable[[Rows], Rows]] = {
    "cls": lambda rows: rows[:1],
    "last": lambda rows: rows[-1:],
    "mean": lambda rows: rows.mean(axis=0, keepdims=True, dtype=np.float64).astype(np.float32),
    "none": lambda rows: rows,
}


def pool_rows(rows: Rows, pooling: str | None) -> Rows:
    """Return rows [n, n_embd] as they are, or pooled to [1, n_embd].

    Raises RequestError for a pooling that does not exist.
    """
    kind = "none" if pooling is None else pooling
    if kind not in POOLINGS:
        raise RequestError(f"There is no pooling “{kind}”.{nearest(kind, POOLINGS)}")
    return POOLINGS[kind](rows)
