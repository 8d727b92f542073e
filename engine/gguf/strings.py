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


def short_run(block: bytes) -> np.ndarray:
    """Return where the strings lie that follow each other from the start of `block`, int64.

    The result is [n + 1]: n offsets of length prefixes and the offset after the last string. It
    stops before a string of 256 bytes or more, and wherever seven zero bytes in a string could
    be taken for a prefix; n may be 0. Every step is checked (each prefix lies exactly where the
    one before says), so what is returned is what a walk string by string would find.
    """
    stored = np.frombuffer(block, np.uint8)
    zero = stored == 0
    two = zero[:-1] & zero[1:]
    four = two[:-2] & two[2:]
    seven = four[:-3] & four[3:]
    prefixes = np.flatnonzero(seven[1:])  # a length below 256 and seven zero bytes
    if not len(prefixes) or prefixes[0] != 0:
        return np.zeros(1, np.int64)
    following = prefixes + 8 + stored[prefixes]
    breaks = np.flatnonzero(following[:-1] != prefixes[1:])
    n = int(breaks[0]) + 1 if len(breaks) else len(prefixes)
    return np.append(prefixes[:n], following[n - 1])
