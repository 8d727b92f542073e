"""GGUF: the metadata and tensor index of a model over a memory map of its file or files."""

import mmap
import os
import stat
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from engine.errors import MachineError, ModelFileError
from engine.gguf.cursor import damaged, shown
from engine.gguf.header import Header, TensorPlace, read_header
from engine.gguf.split import check_pieces, pieces_of
from engine.gguf.types import GGMLType


class TensorEntry:
    """One tensor: its place in the mapped file; bytes are read when somebody touches them.

    `shape` is in the file's order, row length first; `row_bytes` are the bytes of one row and
    `n_rows` the product of the other dimensions.
    """

    __slots__ = ("_map", "_start", "n_bytes", "n_rows", "name", "row_bytes", "shape", "type")

    def __init__(self, place: TensorPlace, mapped: "_Mapped") -> None:
        self.name: str = place.name
        self.type: GGMLType = place.type
        self.shape: tuple[int, ...] = place.shape
        self.n_bytes: int = place.n_bytes
        self.row_bytes: int = place.type.row_bytes(place.shape[0])
        self.n_rows: int = place.n_bytes // self.row_bytes
        self._map = mapped
        self._start = place.start

    @property
    def n_elements(self) -> int:
        """Number of elements."""
        return self.shape[0] * self.n_rows

    @property
    def address(self) -> int:
        """Address of the first byte; valid until the model is closed."""
        return self._map.whole().ctypes.data + self._start

    def array(self) -> np.ndarray:
        """Return the stored bytes, read-only uint8 [n_rows, row_bytes], without a copy.

        The map lives on as long as such an array does. Raises ValueError after `close`.
        """
        stored = self._map.whole()[self._start : self._start + self.n_bytes]
        return stored.reshape(self.n_rows, self.row_bytes)

    def __repr__(self) -> str:
        return f"<TensorEntry {self.name} {self.type.name} {list(self.shape)}>"


class GGUF:
    """An open model file, or an open set of pieces; a context manager that closes it.

    `metadata` is a read-only mapping of str to int, float, bool, str, numpy array or StringArray;
    it is in memory and stays good after `close`. `tensors` maps names to TensorEntry in the
    file's order.
    """

    def __init__(self, pieces: "list[tuple[Path, Header, _Mapped]]") -> None:
        first = pieces[0][1]
        self.paths: tuple[Path, ...] = tuple(path for path, _, _ in pieces)
        self.version: int = first.version
        self.metadata: Mapping[str, Any] = MappingProxyType(first.metadata)
        self.size_bytes: int = sum(mapped.size for _, _, mapped in pieces)
        self._maps = [mapped for _, _, mapped in pieces]
        tensors: dict[str, TensorEntry] = {}
        for _, header, mapped in pieces:
            for place in header.places:
                if place.name in tensors:
                    raise damaged(f"the tensor {shown(place.name)} appears twice")
                tensors[place.name] = TensorEntry(place, mapped)
        self.tensors: Mapping[str, TensorEntry] = MappingProxyType(tensors)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a GGUF file; given any piece of a split model, open all of its pieces as one.

        Raises ModelFileError with the reason for whatever is not a sound file, its subclass
        UnsupportedModelError for a format version or tensor type that is not known here, and
        MachineError when the system cannot map it.
        """
        given = Path(path)
        header, mapped = _open_piece(given)
        paths = pieces_of(given, header.metadata)
        if len(paths) == 1:
            return cls([(given, header, mapped)])
        opened = [(p, *_open_named_piece(p)) for p in paths]
        check_pieces(paths, [header for _, header, _ in opened])
        return cls(opened)

    @property
    def arch(self) -> str:
        """Name of the architecture; raises ModelFileError if the file names none."""
        arch = self.metadata.get("general.architecture")
        if not isinstance(arch, str) or not arch:
            raise ModelFileError(
                "This file names no architecture, so it is not a model; choose a model file."
            )
        return arch

    @property
    def n_params(self) -> int:
        """Number of weights in all tensors."""
        return sum(entry.n_elements for entry in self.tensors.values())

    @property
    def quantizations(self) -> dict[str, int]:
        """Number of tensors of each type name, most frequent first."""
        return dict(Counter(e.type.name for e in self.tensors.values()).most_common())

    def close(self) -> None:
        """Give the map back; addresses are void from here, arrays still held keep theirs."""
        for mapped in self._maps:
            mapped.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Mapped:
    """The bytes of one file as a read-only array that can be taken away."""

    def __init__(self, file_no: int, size: int) -> None:
        self.size = size
        try:
            mapped = mmap.mmap(file_no, size, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise MachineError(
                f"The system could not map this file of {size / 1e9:.1f} GB into memory"
                f" ({error}); close other programs or choose a smaller model."
            ) from error
        self._bytes: np.ndarray | None = np.frombuffer(mapped, np.uint8)

    def whole(self) -> np.ndarray:
        if self._bytes is None:
            raise ValueError("the model file is closed")
        return self._bytes

    def close(self) -> None:
        self._bytes = None


def _open_named_piece(path: Path) -> tuple[Header, _Mapped]:
    try:
        return _open_piece(path)
    except ModelFileError as error:
        raise type(error)(f"{shown(path.name)}: {error}") from error


def _open_piece(path: Path) -> tuple[Header, _Mapped]:
    try:
        with open(_descriptor(path), "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            header = read_header(file.read, size)
            if header.end > size:
                raise _cut_short(size, header.end)
            return header, _Mapped(file.fileno(), size)
    except OSError as error:
        raise _unreadable(path, error) from error


def _descriptor(path: Path) -> int:
    """Open a regular file for reading; raises OSError for anything else."""
    if "\0" in str(path):
        raise FileNotFoundError
    if path.is_dir():  # Windows cannot open one and would speak of permissions
        raise IsADirectoryError
    # Without O_NONBLOCK, opening a FIFO would wait for a writer for ever.
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise IsADirectoryError
    return descriptor


def _unreadable(path: Path, error: OSError) -> ModelFileError:
    name = shown(path.name)
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return ModelFileError(f"There is no file {name} any more; choose it again.")
    if isinstance(error, PermissionError):
        return ModelFileError(f"The file {name} may not be read; allow it in its properties.")
    if isinstance(error, IsADirectoryError):
        return ModelFileError(f"{name} is a folder or a device; choose a .gguf file.")
    return ModelFileError(
        f"The file {name} could not be read ({error.strerror or error}); check its drive."
    )


def _cut_short(size: int, needed: int) -> ModelFileError:
    there, whole = f"{size:,}", f"{needed:,} bytes"
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if needed >= unit and round(size / unit, 1) != round(needed / unit, 1):
            there, whole = f"{size / unit:,.1f}", f"{needed / unit:,.1f} {name}"
            break
    return ModelFileError(f"This file is cut short: {there} of {whole}; download or copy it again.")
