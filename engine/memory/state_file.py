"""The file of a saved state: written whole in one step, or added to so that a crash harms nothing.

It begins with one piece in safetensors, whose SHA-256 stands in its metadata; a file that was
written whole is nothing more, and any program reads it. What came later follows: each time a mark,
a piece, and a seal that is written only when the piece is on the disk. The seal holds the SHA-256
of the seal before, the mark and the piece, so nothing can be left out, exchanged or altered.

Decision: added to one file, not a folder of files. A conversation stays one thing to count, copy,
delete and evict, and what is cut off by a crash is what was never sealed: the state before it.
"""

import contextlib
import hashlib
import os
import stat
import struct
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from engine.errors import MachineError, StateFileError
from engine.memory.state_piece import Part, Piece, header_of, parse_piece

MARK = b"\x93inglenook piece"
MAX_PIECES = 256  # that are looked at
_SEAL = struct.Struct("<32sQ8x16s")  # its last bytes say that it is whole
_SEALED = b"inglenook sealed"
_CHECKSUM = "sha256"  # of header and arrays, itself as zeros
_OLD_CHECKSUM = "checksum"  # of the arrays only, as files had it first
CHECKSUMS = (_CHECKSUM, _OLD_CHECKSUM)
_NO_SUM = "0" * 64
UNFINISHED = ".part"  # ends the name of a file that is being written; a dot begins it
_HASH_BYTES = 1 << 24


@dataclass(frozen=True)
class StateFile:
    """A read file: its pieces, the digest of the last, and the bytes up to its end.

    `is_torn` says that something follows which was never sealed; it is no part of the state.
    """

    pieces: tuple[Piece, ...]
    digest: bytes
    n_bytes: int
    is_torn: bool


# ------------------------------------------------------------- writing


def write_state(path: Path, metadata: Mapping[str, str], parts: Sequence[Part]) -> int:
    """Write a file in one step: whoever looks sees the old one or the whole new one.

    Returns the bytes written. Raises MachineError if the system cannot store it; then nothing is
    left behind.
    """
    header = header_of({_CHECKSUM: _NO_SUM, **metadata}, parts)
    with _said(path), _named_when_whole(path) as file:
        digest = hashlib.sha256(header)
        file.write(header)
        _write_arrays(file, digest, parts)
        n_bytes = file.tell()
        file.seek(header.index(_NO_SUM.encode()))
        file.write(digest.hexdigest().encode())
    return n_bytes


def add_to_state(
    path: Path, known: StateFile, metadata: Mapping[str, str], parts: Sequence[Part]
) -> int:
    """Add a piece behind the end of a file as it was read; returns the bytes written.

    A file that is torn must be written whole instead. Raises MachineError if the system cannot
    store it; then the file is what it was.
    """
    header = header_of(metadata, parts)
    with _said(path), path.open("r+b") as file, _as_before(file, known.n_bytes):
        digest = hashlib.sha256(known.digest + MARK + header)
        file.write(MARK + header)
        _write_arrays(file, digest, parts)
        n_piece = file.tell() - known.n_bytes - len(MARK)
        _sync(file)
        file.write(_SEAL.pack(digest.digest(), n_piece, _SEALED))
        _sync(file)
        return file.tell() - known.n_bytes


def _write_arrays(file: IO[bytes], digest: "hashlib._Hash", parts: Sequence[Part]) -> None:
    for part in parts:
        for chunk in part.chunks():
            digest.update(chunk)
            file.write(chunk)


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


@contextlib.contextmanager
def _said(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise MachineError(
            f"The memory of the conversation could not be stored in {path.name} "
            f"({error.strerror or error}): make room or choose another folder."
        ) from error


@contextlib.contextmanager
def _as_before(file: IO[bytes], end: int) -> Iterator[None]:
    """Stand at the end of what is there, and cut the file there again if the block fails."""
    file.seek(end)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            file.flush()
        with contextlib.suppress(OSError):
            os.ftruncate(file.fileno(), end)
        raise


@contextlib.contextmanager
def _named_when_whole(path: Path) -> Iterator[IO[bytes]]:
    file = tempfile.NamedTemporaryFile(
        dir=path.parent, prefix=f".{path.name[:40]}.", suffix=UNFINISHED, delete=False
    )
    try:
        with file:
            _lock(file)
            yield file
            _sync(file)
        os.replace(file.name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(file.name)
        raise


def _lock(file: IO[bytes]) -> bool:
    """Let others see that somebody writes a file; False if somebody else does."""
    try:
        import fcntl
    except ImportError:  # a system that does not let an open file be deleted
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def sweep_unfinished(folder: Path) -> int:
    """Delete what a program that ended has left half written in a folder; return how many files.

    What another one is just writing stays, and so does what cannot be deleted.
    """
    n_deleted = 0
    for path in folder.glob(f".*{UNFINISHED}"):
        with contextlib.suppress(OSError), path.open("rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode) or not _lock(file):
                continue
            if os.name == "nt":
                file.close()
            path.unlink()
            n_deleted += 1
    return n_deleted


# ------------------------------------------------------------- reading


def read_state(path: Path, *, verifies: bool = True) -> StateFile:
    """Map a file and hold it against its own headers and, unless told not to, its checksums.

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
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise StateFileError(
            f"The saved memory {path.name} is damaged ({error}); the conversation will be read "
            "again."
        ) from error


def _parse(content: NDArray[np.uint8], verifies: bool) -> StateFile:
    """Return what a file's bytes hold; raises ValueError, KeyError, TypeError, AttributeError."""
    first = parse_piece(content)
    end = first.n_bytes
    digest = _first_digest(content[:end], first, verifies)
    pieces, is_torn = [first], False
    while end < len(content):
        sealed = _sealed(content[end:])
        is_torn = sealed is None
        if sealed is None:
            break
        piece, sum_of_piece = sealed
        n_marked = len(MARK) + piece.n_bytes
        if verifies and _digest(digest, content[end : end + n_marked]) != sum_of_piece:
            raise ValueError("its checksum does not fit")
        digest = sum_of_piece
        end += n_marked + _SEAL.size
        pieces.append(piece)
        if len(pieces) > MAX_PIECES:
            raise ValueError("it has too many pieces")
    return StateFile(tuple(pieces), digest, end, is_torn)


def _sealed(tail: NDArray[np.uint8]) -> tuple[Piece, bytes] | None:
    """Return the piece that follows and the digest in its seal; None if it was never sealed.

    Raises ValueError for what cannot have been begun as a piece.
    """
    if tail[0] not in (MARK[0], 0):  # a crash may leave zeros
        raise ValueError("something follows its end")
    if tail[: len(MARK)].tobytes() != MARK:
        return None
    try:
        piece = parse_piece(tail[len(MARK) :])
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None
    seal = tail[len(MARK) + piece.n_bytes :][: _SEAL.size].tobytes()
    if len(seal) < _SEAL.size:
        return None
    digest, n_bytes, words = _SEAL.unpack(seal)
    return (piece, digest) if words == _SEALED and n_bytes == piece.n_bytes else None


def _first_digest(content: NDArray[np.uint8], first: Piece, verifies: bool) -> bytes:
    """Return the digest of the first piece, as the next one goes on from it."""
    noted = first.metadata.get(_CHECKSUM)
    if noted is None:
        noted = first.metadata[_OLD_CHECKSUM]
        begin = first.n_bytes - sum(array.nbytes for array in first.arrays.values())
        found = _digest(b"", content[begin:]) if verifies else b""
    else:
        found = _digest_with_hole(content, noted) if verifies else b""
    if verifies and found.hex() != noted:
        raise ValueError("its checksum does not fit")
    return bytes.fromhex(noted)


def _digest_with_hole(content: NDArray[np.uint8], noted: str) -> bytes:
    """Return the digest of a piece with zeros where it notes its own."""
    n_header = 8 + int(content[:8].view("<u8")[0])
    header = content[:n_header].tobytes().replace(noted.encode(), _NO_SUM.encode(), 1)
    return _digest(header, content[n_header:])


def _digest(before: bytes, content: NDArray[np.uint8]) -> bytes:
    digest = hashlib.sha256(before)
    for start in range(0, len(content), _HASH_BYTES):
        digest.update(content[start : start + _HASH_BYTES].data)
    return digest.digest()
