"""Writes small GGUF files byte by byte, so that a test can also write wrong ones."""

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
_CODES = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?"} | {
    U64: "Q",
    I64: "q",
    F64: "d",
}


def string(text: str | bytes) -> bytes:
    """Return a length-prefixed string."""
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def value(kind: int, given: Any) -> bytes:
    """Return a value without its type; an array is given as (item kind, list)."""
    if kind == STRING:
        return string(given)
    if kind == ARRAY:
        item, items = given
        return struct.pack("<IQ", item, len(items)) + b"".join(value(item, v) for v in items)
    return struct.pack("<" + _CODES[kind], given)


def key(name: str | bytes, kind: int, given: Any) -> bytes:
    """Return one key with its type and value."""
    return string(name) + struct.pack("<I", kind) + value(kind, given)


@dataclass
class FileOfTest:
    """A GGUF file in parts that a test may falsify before `bytes()` puts them together.

    A tensor is (name, shape with the row length first, type id, bytes); `offsets` and `counts`
    replace what would be computed.
    """

    keys: list[bytes] = field(default_factory=list)
    tensors: list[tuple[str, tuple[int, ...], int, bytes]] = field(default_factory=list)
    version: int = 3
    alignment: int = 32
    offsets: dict[str, int] = field(default_factory=dict)
    n_tensors: int | None = None
    n_keys: int | None = None

    def bytes(self) -> bytes:
        """Return the whole file."""
        infos, stored = b"", b""
        for name, shape, kind, raw in self.tensors:
            stored += bytes(-len(stored) % self.alignment)
            offset = self.offsets.get(name, len(stored))
            infos += string(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
            infos += struct.pack("<IQ", kind, offset)
            stored += raw
        n_tensors = len(self.tensors) if self.n_tensors is None else self.n_tensors
        n_keys = len(self.keys) if self.n_keys is None else self.n_keys
        head = struct.pack("<4sIQQ", b"GGUF", self.version, n_tensors, n_keys)
        head += b"".join(self.keys) + infos
        return head + bytes(-len(head) % self.alignment) + stored

    def write(self, path: Path) -> Path:
        """Write the file and return its path."""
        path.write_bytes(self.bytes())
        return path


def small(arch: str = "llama", **changes: Any) -> FileOfTest:
    """Return a sound file with every kind of value and three tensors."""
    keys = [
        key("general.architecture", STRING, arch),
        key("general.name", STRING, "Ein kleines Modell 模型"),
        key("u8", U8, 200),
        key("i8", I8, -3),
        key("u16", U16, 65535),
        key("i16", I16, -300),
        key("u32", U32, 4_000_000_000),
        key("i32", I32, -5),
        key("f32", F32, 0.5),
        key("bool", BOOL, True),
        key("u64", U64, 1 << 60),
        key("i64", I64, -(1 << 60)),
        key("f64", F64, 1e-9),
        key("numbers", ARRAY, (F32, [1.0, 2.5, -3.0])),
        key("flags", ARRAY, (BOOL, [True, False, True])),
        key("nested", ARRAY, (ARRAY, [(U8, [1, 2]), (STRING, ["a", "b"])])),
        key("tokens", ARRAY, (STRING, ["a", "", "日本", b"\xff\xfe", "long " * 60])),
        key("none", ARRAY, (STRING, [])),
    ]
    weights = np.arange(12, dtype=np.float32)
    tensors = [
        ("norm.weight", (4,), 0, weights[:4].tobytes()),
        ("out.weight", (4, 3), 0, weights.tobytes()),
        ("blk.0.w", (64, 2), 2, bytes(range(72))),
    ]
    return FileOfTest(keys, tensors, **changes)


def vocabulary(n_tokens: int) -> FileOfTest:
    """Return a file without tensors and with `n_tokens` tokens, scores and types."""
    keys = [
        key("general.architecture", STRING, "llama"),
        key("tokenizer.ggml.tokens", ARRAY, (STRING, [f"▁token{i}" for i in range(n_tokens)])),
        key("tokenizer.ggml.scores", ARRAY, (F32, [-float(i) for i in range(n_tokens)])),
        key("tokenizer.ggml.token_type", ARRAY, (I32, [1] * n_tokens)),
    ]
    return FileOfTest(keys)


def split_set(folder: Path, stem: str = "big", n_pieces: int = 3) -> list[Path]:
    """Write a model of `n_pieces` files with one F32 tensor each and return their paths."""
    paths = []
    for i in range(n_pieces):
        keys = [
            key("split.no", U16, i),
            key("split.count", U16, n_pieces),
            key("split.tensors.count", I32, n_pieces),
        ]
        if i == 0:
            keys.append(key("general.architecture", STRING, "llama"))
        raw = np.full(8, i, np.float32).tobytes()
        made = FileOfTest(keys, [(f"blk.{i}.w", (8,), 0, raw)])
        paths.append(made.write(folder / f"{stem}-{i + 1:05d}-of-{n_pieces:05d}.gguf"))
    return paths
