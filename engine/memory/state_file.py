"""The file of a saved sequence: safetensors, written so that a reader sees all of it or none.

The data's SHA-256 stands in the metadata; it is filled into a place kept for it after the data,
before the file takes its name.
"""

import contextlib
import hashlib
import json
import math
import os
import stat
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import MachineError, StateFileError

DTYPES: dict[str, np.dtype[Any]] = {
    "I32": np.dtype("<i4"),
    "F32": np.dtype("<f4"),
    "U8": np.dtype("u1"),
}
MAX_HEADER_BYTES = 16 << 20
_CHECKSUM = "checksum"
_NO_SUM = "0" * 64
_HASH_BYTES = 1 << 24


@dataclass(frozen=True)
class Part:
    """One array to write, as the pieces that it is made of: they are asked for in its turn."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    pieces: Callable[[], Iterable[NDArray]]

    @property
    def n_bytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * DTYPES[self.dtype].itemsize


def write_state(path: Path, metadata: Mapping[str, str], parts: Sequence[Part]) -> None:
    """Write a file in one step: whoever looks sees the old one or the whole new one.

    Raises MachineError if the system cannot store it; then nothing is left behind.
    """
    header = _header(metadata, parts)
    try:
        with _named_when_whole(path) as file:
            file.write(struct.pack("<Q", len(header)) + header)
            digest = hashlib.sha256()
            for part in parts:
                for piece in part.pieces():
                    array = np.ascontiguousarray(piece, DTYPES[part.dtype])
                    content = array.reshape(-1).view(np.uint8).data
                    digest.update(content)
                    file.write(content)
            file.seek(8 + header.index(_NO_SUM.encode()))
            file.write(digest.hexdigest().encode())
    except OSError as error:
        raise MachineError(
            f"The memory of the conversation could not be stored in {path.name} "
            f"({error.strerror or error}): make room or choose another folder."
        ) from error


def _header(metadata: Mapping[str, str], parts: Sequence[Part]) -> bytes:
    header: dict[str, Any] = {"__metadata__": {_CHECKSUM: _NO_SUM, **metadata}}
    start = 0
    for part in parts:
        end = start + part.n_bytes
        entry = {"dtype": part.dtype, "shape": list(part.shape), "data_offsets": [start, end]}
        header[part.name] = entry
        start = end
    text = json.dumps(header, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % 64)


@contextlib.contextmanager
def _named_when_whole(path: Path) -> Iterator[IO[bytes]]:
    file = tempfile.NamedTemporaryFile(
        dir=path.parent, prefix=f".{path.name}.", suffix=".part", delete=False
    )
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(file.name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(file.name)
        raise


@dataclass(frozen=True)
class State:
    """A read file: its metadata, and its arrays over a memory map."""

    metadata: Mapping[str, str]
    arrays: Mapping[str, NDArray]


def read_state(path: Path, *, verifies: bool = True) -> State:
    """Map a file and hold it against its own header and, unless told not to, its checksum.

    Raises StateFileError with the reason for a file that is missing, cut, altered or not one.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise StateFileError(f"{path.name} is not a file.")
        content = np.memmap(path, np.uint8, "r")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is empty"
        raise StateFileError(
            f"The saved memory {path.name} could not be read ({reason}); the conversation will be "
            "read again."
        ) from error
    try:
        return _parse(content, verifies)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise StateFileError(
            f"The saved memory {path.name} is damaged ({error}); the conversation will be read "
            "again."
        ) from error


def _parse(content: NDArray[np.uint8], verifies: bool) -> State:
    """Return the state in a file's bytes; raises ValueError, KeyError or TypeError."""
    n_header = int(content[:8].view("<u8")[0]) if len(content) >= 8 else 0
    if not 2 <= n_header <= min(MAX_HEADER_BYTES, len(content) - 8):
        raise ValueError("it has no header")
    header = json.loads(content[8 : 8 + n_header].tobytes())
    metadata = header.pop("__metadata__")
    if not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("its metadata is not text")
    body = content[8 + n_header :]
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
    if at != len(body):
        raise ValueError("something follows its end")
    if verifies and _checksum(body) != metadata[_CHECKSUM]:
        raise ValueError("its checksum does not fit")
    return State(metadata, arrays)


def _checksum(body: NDArray[np.uint8]) -> str:
    digest = hashlib.sha256()
    for start in range(0, len(body), _HASH_BYTES):
        digest.update(body[start : start + _HASH_BYTES].data)
    return digest.hexdigest()
