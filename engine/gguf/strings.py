"""An array of strings kept as the file stores it, cut into pieces only where somebody looks."""

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np


class StringArray(Sequence[bytes]):
    """A read-only array of byte strings over one block of length-prefixed bytes.

    `blob` is the array as stored: each string is 8 bytes of length and then its bytes.
    `starts` and `ends` (int64 [n]) say where string i lies in it: blob[starts[i]:ends[i]].
    Strings are bytes, since a token need not be UTF-8; `texts` decodes them all.
    """

    __slots__ = ("blob", "ends", "starts")

    def __init__(self, blob: bytes, offsets: np.ndarray) -> None:
        """Take the stored bytes and int64 [n + 1] offsets of the length prefixes in them."""
        self.blob = blob
        self.starts = offsets[:-1] + 8
        self.ends = offsets[1:]

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return self._cut(self.starts[index], self.ends[index])
        return self.blob[self.starts[index] : self.ends[index]]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.tolist())

    def __repr__(self) -> str:
        return f"<StringArray of {len(self)}>"

    def tolist(self) -> list[bytes]:
        """Return all strings as bytes."""
        return self._cut(self.starts, self.ends)

    def texts(self) -> list[str]:
        """Return all strings as text; bytes that are not UTF-8 become U+FFFD."""
        return [piece.decode("utf-8", "replace") for piece in self.tolist()]

    def _cut(self, starts: np.ndarray, ends: np.ndarray) -> list[bytes]:
        blob = self.blob
        return [blob[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
