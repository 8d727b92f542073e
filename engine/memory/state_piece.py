"""One piece of a saved state: arrays by name behind a header, as safetensors lays them out."""

import json
import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

DTYPES: dict[str, np.dtype[Any]] = {
    "I32": np.dtype("<i4"),
    "F32": np.dtype("<f4"),
    "U8": np.dtype("u1"),
}
MAX_HEADER_BYTES = 16 << 20
_SIZE = struct.Struct("<Q")


@dataclass(frozen=True)
class Part:
    """One array to write, as the pieces that it is made of: they are asked for in its turn."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    pieces: Callable[[], Iterable[NDArray]]

    @classmethod
    def of(cls, name: str, dtype: str, array: NDArray) -> "Part":
        """Return a part that is one array."""
        return cls(name, dtype, array.shape, lambda: [array])

    @property
    def n_bytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * DTYPES[self.dtype].itemsize

    def chunks(self) -> Iterable[memoryview]:
        """Yield the bytes of the array."""
        for piece in self.pieces():
            array = np.ascontiguousarray(piece, DTYPES[self.dtype])
            yield array.reshape(-1).view(np.uint8).data


@dataclass(frozen=True)
class Piece:
    """What was read: metadata, arrays over a memory map, and how many bytes they take in all."""

    metadata: Mapping[str, str]
    arrays: Mapping[str, NDArray]
    n_bytes: int


def header_of(metadata: Mapping[str, str], parts: Sequence[Part]) -> bytes:
    """Return what stands before the arrays: the header's size and the header."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    start = 0
    for part in parts:
        end = start + part.n_bytes
        entry = {"dtype": part.dtype, "shape": list(part.shape), "data_offsets": [start, end]}
        header[part.name] = entry
        start = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 64)
    return _SIZE.pack(len(text)) + text


def parse_piece(content: NDArray[np.uint8]) -> Piece:
    """Return the piece at the start of some bytes; raises ValueError, KeyError or TypeError."""
    n_header = _SIZE.unpack(content[: _SIZE.size].tobytes())[0] if len(content) >= _SIZE.size else 0
    if not 2 <= n_header <= min(MAX_HEADER_BYTES, len(content) - _SIZE.size):
        raise ValueError("it has no header")
    header = json.loads(content[_SIZE.size : _SIZE.size + n_header].tobytes())
    metadata = header.pop("__metadata__")
    if not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("its metadata is not text")
    body = content[_SIZE.size + n_header :]
    arrays, at = {}, 0
    for name, entry in header.items():
        dtype, shape = DTYPES[entry["dtype"]], tuple(entry["shape"])
        if not all(type(n) is int and 0 <= n < 1 << 40 for n in shape):
            raise ValueError("a shape is absurd")
        end = at + math.prod(shape) * dtype.itemsize
        if list(entry["data_offsets"]) != [at, end] or end > len(body):
            raise ValueError("it is cut short" if end > len(body) else "its parts overlap")
        arrays[name] = body[at:end].view(dtype).reshape(shape)
        at = end
    return Piece(metadata, arrays, _SIZE.size + n_header + at)
