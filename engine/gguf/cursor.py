"""Reads the header of a file front to back, in pieces, and never believes a length in it.

The header is read with `read`, not through the memory map, so that a file on a failing or
vanishing drive ends in an error and not in a dead process.
"""

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from engine.errors import ModelFileError
from engine.gguf.strings import StringArray, short_run

MAX_HEADER_BYTES = 256 << 20  # the largest vocabularies with merges need 20 MB
MAX_ITEMS = 1 << 22  # of all arrays together; the largest vocabulary has 262,144 tokens
MAX_DEPTH = 4  # of arrays in arrays
FIRST_READ = 1 << 20
RUN_BYTES = 1 << 18  # small enough to stay in the second-level cache

BOOL, STRING, ARRAY = 7, 8, 9
_SCALARS = {
    0: "u1",
    1: "i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    6: "<f4",
    7: "u1",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}
_DTYPES = {kind: np.dtype(code) for kind, code in _SCALARS.items()}
_LEAST_BYTES = {STRING: 8, ARRAY: 12}  # of an item that is empty
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


def shown(name: str | bytes) -> str:
    """Return a name from a file in quotes, short and without control characters."""
    text = name.decode("utf-8", "replace") if isinstance(name, bytes) else name
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:61])
    return f"“{text[:60]}…”" if len(text) > 60 else f"“{text}”"


def damaged(reason: str) -> ModelFileError:
    """Return the error for a file whose header contradicts itself."""
    return ModelFileError(f"This file is damaged: {reason}; download or copy it again.")


class Cursor:
    """A position in the header of a file of `size` bytes; every read is checked against it."""

    def __init__(self, read: Callable[[int], bytes], size: int) -> None:
        self.pos = 0
        self.where = "the header"  # what is being read, for the sentence of an error
        self._read = read
        self._size = size
        self._known = bytearray()
        self._items_left = MAX_ITEMS

    def u32(self) -> int:
        """Return the next u32."""
        at = self.take(4)
        return _U32.unpack_from(self._known, at)[0]

    def u64(self) -> int:
        """Return the next u64."""
        at = self.take(8)
        return _U64.unpack_from(self._known, at)[0]

    def raw(self, n_bytes: int) -> bytes:
        """Return the next bytes as they are."""
        at = self.take(n_bytes)
        return bytes(self._known[at : at + n_bytes])

    def name(self, what: str, max_bytes: int) -> str:
        """Return the next string as the name of a `what`: not empty, not too long, UTF-8."""
        n_bytes = self.u64()
        if not 0 < n_bytes <= max_bytes:
            raise damaged(f"the name of a {what} has {n_bytes:,} bytes")
        raw = self.raw(n_bytes)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise damaged(f"the name of a {what} is not text ({shown(raw)})") from None

    def value(self, kind: int, depth: int = 0) -> Any:
        """Return a value of a GGUF value type: int, float, bool, str, array or StringArray."""
        if kind == STRING:
            return self.raw(self.u64()).decode("utf-8", "replace")
        if kind == ARRAY:
            return self._array(depth + 1)
        dtype = _DTYPES.get(kind)
        if dtype is None:
            raise damaged(f"{self.where} has the unknown value type {kind}")
        number = np.frombuffer(self.raw(dtype.itemsize), dtype)[0].item()
        return number != 0 if kind == BOOL else number

    def _array(self, depth: int) -> Any:
        kind, count = self.u32(), self.u64()
        if depth > MAX_DEPTH:
            raise damaged(f"{self.where} nests arrays more than {MAX_DEPTH} deep")
        dtype = _DTYPES.get(kind)
        least = dtype.itemsize if dtype is not None else _LEAST_BYTES.get(kind, 0)
        if not least:
            raise damaged(f"{self.where} has the unknown item type {kind}")
        if count * least > self._size - self.pos:
            raise self._beyond(f"claims {count:,} items, which do not fit into")
        if count > self._items_left:
            raise damaged(f"{self.where} has {count:,} items, more than any vocabulary")
        self._items_left -= count
        if dtype is not None:
            values = np.frombuffer(self.raw(count * least), dtype)
            return values != 0 if kind == BOOL else values
        if kind == STRING:
            return self._strings(count)
        return tuple(self._array(depth + 1) for _ in range(count))

    def _strings(self, count: int) -> StringArray:
        """Find all length prefixes, in runs where that is possible, else one by one."""
        offsets = np.empty(count + 1, np.int64)
        start, pos, i = self.pos, self.pos, 0
        n_walk = 64
        while i < count:
            self._reach(pos, 8)
            block = bytes(self._known[pos : pos + RUN_BYTES])
            run = short_run(block)[: count - i + 1] + pos
            n = len(run) - 1
            offsets[i : i + n], pos, i = run[:-1], int(run[-1]), i + n
            if n < n_walk:
                walked = self._walk(pos, min(n_walk, count - i))
                offsets[i : i + len(walked) - 1], pos = walked[:-1], walked[-1]
                i += len(walked) - 1
                n_walk *= 2  # so that a file made to defeat the runs costs no more than a walk
        offsets[count] = pos
        self.take(pos - start)
        return StringArray(bytes(self._known[start:pos]), offsets - start)

    def _walk(self, pos: int, count: int) -> list[int]:
        """Return the offsets of `count` strings from `pos` and where the last one ends."""
        offsets = [pos]
        for _ in range(count):
            self._reach(pos, 8)
            pos += 8 + _U64.unpack_from(self._known, pos)[0]
            offsets.append(pos)
        self._reach(pos, 0)
        return offsets

    def take(self, n_bytes: int) -> int:
        """Make the next bytes known, step over them and return where they start."""
        at = self.pos
        self._reach(at, n_bytes)
        self.pos = at + n_bytes
        return at

    def _reach(self, at: int, n_bytes: int) -> None:
        end = at + n_bytes
        if end <= len(self._known):
            return
        if end > self._size:
            raise self._beyond("goes on past the end of")
        if end > MAX_HEADER_BYTES:
            raise damaged(f"{self.where} goes on past {MAX_HEADER_BYTES >> 20} MB")
        while len(self._known) < end:
            wish = max(FIRST_READ, len(self._known), end - len(self._known))
            piece = self._read(min(wish, self._size - len(self._known)))
            if not piece:
                raise self._beyond("goes on past the end of")
            self._known += piece

    def _beyond(self, claim: str) -> ModelFileError:
        return ModelFileError(
            f"This file is damaged or cut short: {self.where} {claim} its"
            f" {self._size:,} bytes; download or copy it again."
        )
