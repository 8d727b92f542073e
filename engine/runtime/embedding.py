"""Embedding: one text on its way to its vector, read piece by piece, other work in between.

Decision: a text is read in pieces of any size, for the models here look back only: every pooling
takes rows as they come (the mean adds them up). A model whose tokens look ahead too must be read
in one piece; it will refuse texts longer than `n_ubatch`, as a piece that long is what the others
can be made to wait for.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from engine.runtime.pooling import Pooled

Rows = NDArray[np.float32]


class Embedding:
    """A text being read in the spare sequence of a context. One at a time per context."""

    def __init__(
        self,
        tokens: NDArray[np.int32],
        pooled: Pooled,
        read: Callable[[NDArray[np.int32], int, NDArray[np.int32]], Rows],
    ) -> None:
        """`read(tokens, start, rows)` reads tokens from position `start` and returns some rows."""
        self._tokens = tokens
        self._pooled = pooled
        self._read = read
        self.n_read = 0

    @property
    def n_left(self) -> int:
        """Tokens that are not read yet."""
        return len(self._tokens) - self.n_read

    def step(self, n_most: int) -> bool:
        """Read at most n_most further tokens; return whether the text is read.

        Raises ContextFullError when there is no room, with what was read before still there.
        """
        piece = self._tokens[self.n_read : self.n_read + n_most]
        wanted = self._pooled.wanted_rows(self.n_read, len(piece), len(self._tokens))
        rows = self._read(piece, self.n_read, wanted)
        self._pooled.add(rows)
        self.n_read += len(piece)
        return not self.n_left

    def result(self) -> Rows:
        """Return the rows [n, n_embd], or pooled to [1, n_embd]; [1, labels] of a ranking head."""
        return self._pooled.result()
