"""One file's header: version, metadata and where each tensor lies, all checked."""

from collections.abc import Callable
from typing import Any, NamedTuple

from engine.errors import ModelFileError, UnsupportedModelError
from engine.gguf.cursor import Cursor, damaged, shown
from engine.gguf.types import GGML_TYPES, GGMLType

MAX_KEYS = 1 << 16
MAX_TENSORS = 1 << 16
MAX_KEY_BYTES = (1 << 16) - 1  # the format's own limit
MAX_NAME_BYTES = 127  # the format says 64; some writers go beyond
MAX_TENSOR_BYTES = 1 << 44  # beyond it a number is damage, not a model
MAX_ALIGNMENT = 1 << 20

_FOREIGN = (
    (b"lmgg", "an old GGML file"),
    (b"fmgg", "an old GGML file"),
    (b"tjgg", "an old GGML file"),
    (b"algg", "an old GGML adapter"),
    (b"PK\x03\x04", "a ZIP archive or a PyTorch checkpoint"),
    (b"version https://git-lfs", "a Git LFS pointer that stands for the model"),
    (b"<!DOCTYPE", "a web page"),
    (b"<html", "a web page"),
)


class TensorPlace(NamedTuple):
    """A tensor of one file: shape with the row length first, and its bytes' place in the file."""

    name: str
    type: GGMLType
    shape: tuple[int, ...]
    start: int
    n_bytes: int


class Header(NamedTuple):
    """What the header of one file says; `end` is where its last tensor ends."""

    version: int
    metadata: dict[str, Any]
    places: list[TensorPlace]
    end: int


def read_header(read: Callable[[int], bytes], size: int) -> Header:
    """Read the header of a file of `size` bytes; `read(n)` gives its next bytes.

    Raises ModelFileError for damage, UnsupportedModelError for a version or type we do not know.
    """
    cursor = Cursor(read, size)
    version, n_tensors, n_keys = _opening(cursor, size)
    metadata = _metadata(cursor, n_keys)
    infos = [_tensor(cursor) for _ in range(n_tensors)]
    alignment = _alignment(metadata)
    data_start = -(-cursor.pos // alignment) * alignment
    places = []
    for name, kind, shape, offset in infos:
        if offset % alignment:
            raise damaged(f"the tensor {shown(name)} starts at {offset:,}, not at its alignment")
        n_bytes = _n_bytes(name, kind, shape)
        if data_start + offset + n_bytes > MAX_TENSOR_BYTES:
            raise damaged(f"the tensor {shown(name)} claims to lie at byte {offset:,}")
        places.append(TensorPlace(name, kind, shape, data_start + offset, n_bytes))
    return Header(version, metadata, places, _end(places, cursor.pos))


def _opening(cursor: Cursor, size: int) -> tuple[int, int, int]:
    if size == 0:
        raise ModelFileError("This file is empty; download or copy it again.")
    magic = cursor.raw(min(size, 24))
    cursor.pos = min(size, 4)
    if magic[:4] != b"GGUF":
        raise ModelFileError(_foreign(magic))
    version = cursor.u32()
    if version in (0x01000000, 0x02000000, 0x03000000):
        raise UnsupportedModelError(
            "This file was written for a big-endian machine; get the little-endian file instead."
        )
    if version == 1:
        raise UnsupportedModelError(
            "This file has version 1 of the GGUF format, which nobody writes any more;"
            " get a newer file of the same model."
        )
    if version not in (2, 3):
        raise UnsupportedModelError(
            f"This file has version {version} of the GGUF format and this program reads"
            " 2 and 3; get the file in one of these or a newer Inglenook."
        )
    return version, _count(cursor, "tensors", MAX_TENSORS), _count(cursor, "keys", MAX_KEYS)


def _foreign(magic: bytes) -> str:
    found = next((what for start, what in _FOREIGN if magic.startswith(start)), None)
    if found is None and magic[8:10] == b'{"':
        found = "a safetensors file"
    what = f": it is {found}" if found else ""
    return f"This is not a GGUF model file{what}; choose or download another."


def _count(cursor: Cursor, what: str, limit: int) -> int:
    count = cursor.u64()
    if count > limit:
        raise damaged(f"its header claims {count:,} {what}")
    return count


def _metadata(cursor: Cursor, n_keys: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for _ in range(n_keys):
        cursor.where = "the list of keys"
        key = cursor.name("key", MAX_KEY_BYTES)
        if key in metadata:
            raise damaged(f"the key {shown(key)} appears twice")
        cursor.where = f"the key {shown(key)}"
        metadata[key] = cursor.value(cursor.u32())
    return metadata


def _tensor(cursor: Cursor) -> tuple[str, GGMLType, tuple[int, ...], int]:
    cursor.where = "the list of tensors"
    name = cursor.name("tensor", MAX_NAME_BYTES)
    n_dims = cursor.u32()
    if n_dims > 4:
        raise damaged(f"the tensor {shown(name)} has {n_dims:,} dimensions")
    shape = tuple(cursor.u64() for _ in range(n_dims)) or (1,)
    kind = GGML_TYPES.get(type_id := cursor.u32())
    offset = cursor.u64()
    if kind is None:
        raise UnsupportedModelError(
            f"The tensor {shown(name)} has the quantization type {type_id}, which this version"
            " does not know; choose another quantization of the model."
        )
    return name, kind, shape, offset


def _n_bytes(name: str, kind: GGMLType, shape: tuple[int, ...]) -> int:
    if 0 in shape:
        raise damaged(f"the tensor {shown(name)} has a dimension of 0")
    if shape[0] % kind.block_len:
        raise damaged(
            f"the tensor {shown(name)} has rows of {shape[0]:,}, not whole {kind.name} blocks"
        )
    n_bytes = kind.row_bytes(shape[0])
    for n in shape[1:]:
        n_bytes *= n
    return n_bytes


def _alignment(metadata: dict[str, Any]) -> int:
    alignment = metadata.get("general.alignment", 32)
    is_whole = isinstance(alignment, int) and not isinstance(alignment, bool)
    if not is_whole or not 8 <= alignment <= MAX_ALIGNMENT or alignment & (alignment - 1):
        raise damaged(f"its alignment is {shown(str(alignment))}, not a power of two from 8")
    return alignment


def _end(places: list[TensorPlace], header_end: int) -> int:
    """Return where the last tensor ends; raises for tensors that share bytes or a name."""
    seen: set[str] = set()
    end, last = header_end, ""
    for place in sorted(places, key=lambda place: place.start):
        if place.name in seen:
            raise damaged(f"the tensor {shown(place.name)} appears twice")
        if place.start < end:
            raise damaged(f"the tensors {shown(last)} and {shown(place.name)} overlap")
        seen.add(place.name)
        end, last = place.start + place.n_bytes, place.name
    return end
