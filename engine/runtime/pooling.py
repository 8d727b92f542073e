"""Token rows to one embedding, as they come: as asked, or as the model was made for."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from engine.errors import RequestError, nearest

Rows = NDArray[np.float32]
POOLINGS = ("cls", "last", "mean", "none")
RANK = "rank"  # the last row, through the head that a model for ranking has


def find_pooling(wanted: str | None, of_model: str | None, *, has_head: bool = False) -> str:
    """Return the name of a pooling: the wanted one, else the model's own, else none.

    Raises RequestError for one that does not exist, and for ranking where the model has no head.
    """
    kind = wanted or of_model or "none"
    if kind == RANK and not has_head:
        raise RequestError(
            "This model has no head for ranking: choose the pooling mean, last or cls."
        )
    if kind not in POOLINGS and kind != RANK:
        raise RequestError(f"There is no pooling “{kind}”.{nearest(kind, POOLINGS)}")
    return kind


class Pooled:
    """Rows of one text, taken in piece by piece."""

    def __init__(self, kind: str, head: Callable[[Rows], Rows] | None = None) -> None:
        """`kind` is one of `find_pooling`; `head` makes labels of the row of a ranking model."""
        self._kind = kind
        self._head = head
        self._rows: list[Rows] = []
        self._sum: NDArray[np.float64] | None = None
        self._n = 0

    def wanted_rows(self, start: int, n: int, n_all: int) -> NDArray[np.int32]:
        """Return which of n rows from `start` on are needed, of a text of n_all."""
        rows = np.arange(n, dtype=np.int32)
        if self._kind == "cls":
            return rows[:1] if start == 0 else rows[:0]
        if self._kind in ("last", RANK):
            return rows[-1:] if start + n == n_all else rows[:0]
        return rows

    def add(self, rows: Rows) -> None:
        """Take the wanted rows of the next piece, f32 [n, n_embd]."""
        if self._kind != "mean":
            self._rows.append(rows)
            return
        total = rows.sum(axis=0, dtype=np.float64)
        self._sum = total if self._sum is None else self._sum + total
        self._n += len(rows)

    def result(self) -> Rows:
        """Return the rows [n, n_embd], or what they are pooled to: [1, n_embd] or [1, labels]."""
        if self._sum is not None:
            return (self._sum / self._n).astype(np.float32)[None]
        rows = np.concatenate(self._rows)
        return rows if self._head is None else self._head(rows[0])[None]
