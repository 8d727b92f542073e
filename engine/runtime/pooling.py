"""Token rows to one embedding: as asked, or as the model was made for."""

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


def find_pooling(wanted: str | None, of_model: str | None) -> str:
    """Return the name of a pooling: the wanted one, else the model's own, else none.

    Raises RequestError for one that does not exist, and for ranking, which needs a head that no
    model of this version has.
    """
    kind = wanted or of_model or "none"
    if kind == "rank":
        raise RequestError(
            "This model has no head for ranking: choose the pooling mean, last or cls."
        )
    if kind not in POOLINGS:
        raise RequestError(f"There is no pooling “{kind}”.{nearest(kind, POOLINGS)}")
    return kind


def pool_rows(rows: Rows, pooling: str) -> Rows:
    """Return rows [n, n_embd] as they are for "none", or pooled to [1, n_embd]."""
    return POOLINGS[pooling](rows)
