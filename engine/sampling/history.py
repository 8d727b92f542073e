"""History: the tokens a chain has accepted, newest last, in one stretch of memory."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from engine.native.buffers import address, aligned

FIRST_ROOM = 1024


class History:
    """Keeps at least the newest `reach` accepted tokens; what is older may be forgotten."""

    def __init__(self, reach: int) -> None:
        self._reach = reach
        self._end = 0
        self._hold(aligned(FIRST_ROOM, np.int32))

    def __len__(self) -> int:
        return self._end

    @property
    def address_of_end(self) -> int:
        """Address just behind the newest token; changes when tokens are accepted."""
        return self._address + 4 * self._end

    def append(self, token: int) -> None:
        """Add the newest token."""
        if self._end == len(self._tokens):
            self._make_room(1)
        self._tokens[self._end] = token
        self._end += 1

    def extend(self, tokens: Iterable[int]) -> None:
        """Add tokens, the newest last."""
        added = np.fromiter(tokens, np.int32)[-self._reach :]
        if self._end + len(added) > len(self._tokens):
            self._make_room(len(added))
        self._tokens[self._end : self._end + len(added)] = added
        self._end += len(added)

    def reach_back(self, reach: int) -> None:
        """Keep at least the newest `reach` tokens from now on; never fewer than before."""
        self._reach = max(self._reach, reach)

    def clear(self) -> None:
        """Forget everything."""
        self._end = 0

    def copy(self) -> "History":
        """Return an independent history with the same tokens."""
        other = History(self._reach)
        other._hold(aligned(len(self._tokens), np.int32))
        other._tokens[: self._end] = self._tokens[: self._end]
        other._end = self._end
        return other

    def _make_room(self, n: int) -> None:
        """Move the tokens worth keeping to the front of an array with room for n more."""
        kept = self._tokens[max(0, self._end - self._reach) : self._end]
        room = max(FIRST_ROOM, 2 * (len(kept) + n))
        tokens = aligned(room, np.int32)
        tokens[: len(kept)] = kept
        self._hold(tokens)
        self._end = len(kept)

    def _hold(self, tokens: NDArray[np.int32]) -> None:
        self._tokens, self._address = tokens, address(tokens)
