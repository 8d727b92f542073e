"""The strings of a vocabulary, packed, with the table in which kernels find them."""

from collections.abc import Sequence
from itertools import accumulate
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelFileError
from engine.gguf import StringArray
from engine.native import objects
from engine.text.signatures import CUT_BITS, HASH_BASE, TABLE_WORDS, pack

MAX_STRING_BYTES = 1 << 16  # longer strings are never found: no text needs one
_MORE = ("longest", "normalize", "unigram")  # kernels of the unit "text.more"
_lock = Lock()
_loaded: dict[str, objects.Kernels] = {}


def run(kernel: str, **words: int) -> None:
    """Run a kernel of this room in this thread; the first one of a unit loads that unit."""
    unit = "text.more" if kernel in _MORE else "text"
    with _lock:
        if unit not in _loaded:
            _loaded[unit] = objects.load([unit])
    _loaded[unit].call(f"{unit}/{kernel}", pack(kernel, **words))


def bytes_address(text: bytes) -> int:
    """Return where `text` lies in memory; the caller keeps it alive."""
    return np.frombuffer(text, np.uint8).ctypes.data if text else 0


def pack_texts(texts: Sequence[bytes]) -> tuple[bytes, NDArray[np.int64]]:
    """Return the texts joined, and int64 [n + 1] offsets into that."""
    offsets = np.fromiter(accumulate(map(len, texts), initial=0), np.int64, len(texts) + 1)
    return b"".join(texts), offsets


def string_array(strings: Sequence[bytes]) -> StringArray:
    """Return strings made here in the form in which a file holds them."""
    blob = b"".join(len(s).to_bytes(8, "little") + s for s in strings)
    ends = accumulate((8 + len(s) for s in strings), initial=0)
    return StringArray(blob, np.fromiter(ends, np.int64, len(strings) + 1))


class StringTable:
    """Strings by index and index by string.

    Of equal strings the first is found; `first_repeated` is the second one's index, or -1.
    `n_bytes` is the length of all. With
    `is_pairs` the strings are "left right", as merges are stored, and only kernels find them.
    Raises ModelFileError for strings made to collide.
    """

    def __init__(self, strings: StringArray, is_pairs: bool = False) -> None:
        n = len(strings)
        self.strings = strings
        self.is_pairs = is_pairs
        starts = np.ascontiguousarray(strings.starts, np.int64)
        ends = np.ascontiguousarray(strings.ends, np.int64)
        longest = min(int((ends - starts).max(initial=0)), MAX_STRING_BYTES)
        slots = np.zeros(1 << max(3, (2 * n - 1).bit_length()), np.int64)
        base = np.full(longest + 1, HASH_BASE, np.int64)
        base[0] = 1
        powers = np.multiply.accumulate(base)
        self._kept = (starts, ends, slots, powers)
        self.n_bytes = int((ends - starts).sum())
        self.block = np.zeros(len(TABLE_WORDS), np.int64)
        self.block[:] = (
            *(bytes_address(strings.blob), starts.ctypes.data, ends.ctypes.data, n),
            *(slots.ctypes.data, len(slots) - 1, longest, powers.ctypes.data),
        )
        result = np.zeros(2, np.int64)
        run("index", table=self.address, is_pairs=is_pairs, result=result.ctypes.data)
        if result[1]:
            raise ModelFileError(
                "The vocabulary of this file is built to make a program hang; delete the file."
            )
        self.first_repeated = int(result[0])

    @property
    def address(self) -> int:
        """Address of the block that describes this table to kernels."""
        return self.block.ctypes.data

    def __len__(self) -> int:
        return len(self.strings)

    def __getitem__(self, index: int) -> bytes:
        return self.strings[index]

    def find(self, texts: Sequence[bytes]) -> NDArray[np.int32]:
        """Return the index of each text, int32 [n], or -1 where it is not here."""
        blob, offsets = pack_texts(texts)
        ids = np.full(len(texts), -1, np.int32)
        if texts:
            run(
                "find",
                table=self.address,
                text=bytes_address(blob),
                offsets=offsets.ctypes.data,
                n_texts=len(texts),
                ids=ids.ctypes.data,
            )
        return ids

    def joints(self) -> NDArray[np.uint8]:
        """Return the bitmap of character pairs that a merge may join, uint8 [2 ** 17].

        It may hold more pairs than there are, never fewer.
        """
        bits = np.zeros(1 << (CUT_BITS - 3), np.uint8)
        run("joints", table=self.address, is_pairs=self.is_pairs, bits=bits.ctypes.data)
        return bits
