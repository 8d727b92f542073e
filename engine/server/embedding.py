"""Embeddings of texts: one vector each, of the length that was asked for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import RequestError

MAX_INT16 = 32760  # the largest number where vectors are scaled by their largest one
NONE, BY_LARGEST = -1, 0


@dataclass(frozen=True)
class Texts:
    """What to embed: texts or lists of ids; `pooling` "" is the model's own, `normalize` a norm."""

    texts: Sequence[Any]
    pooling: str = ""
    normalize: int = 2
    tokens: Sequence[Sequence[int]] = ()
    finish: Callable[[list[Any]], Any] = list  # makes the answer of the vectors

    def __post_init__(self) -> None:
        if self.normalize < NONE:
            raise RequestError(
                f"There is no norm {self.normalize}; use -1 (none), 0 (the largest number), 1, 2 "
                "or more."
            )

    def with_tokens(self, tokens: Sequence[Sequence[int]], pooling: str) -> "Texts":
        """Return the same with token ids, and with the model's pooling where none was chosen."""
        return replace(self, tokens=tokens, pooling=self.pooling or pooling)

    def vector(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the vector of one text, f32 [n_embd]; with pooling "none" its rows [n, n_embd].

        Rows without pooling are not normalized.
        """
        return rows if self.pooling == "none" else normalized(rows[0], self.normalize)


def normalized(vector: NDArray[np.float32], normalize: int) -> NDArray[np.float32]:
    """Return a vector scaled to length 1 by the p-norm `normalize`; one of zeros stays.

    -1 leaves it as it is, 0 scales its largest number to 16 bits.
    """
    if normalize == NONE:
        return vector
    sizes = np.abs(vector.astype(np.float64))
    if normalize == BY_LARGEST:
        length = sizes.max() / MAX_INT16
    else:
        length = (sizes**normalize).sum() ** (1.0 / normalize)
    return (vector / length).astype(np.float32) if length > 0 else vector
