"""What a GGUF file is, byte by byte, and how one is opened without trusting it.

    magic "GGUF" · version u32 (2 or 3) · number of tensors u64 · number of keys u64
    keys      name, value type u32, value; strings are a u64 length and UTF-8 bytes,
              arrays are an item type u32, a u64 count and the items
    tensors   name, number of dimensions u32, each dimension u64 (the row length first),
              type u32 (a row of GGML_TYPES), offset u64 into the tensor section
    padding   to a multiple of general.alignment (32 when not given)
    tensors' bytes, each at a multiple of the alignment

Everything is little-endian. Nothing in the file is believed: a length, count, offset or type is
held against the size of the file before memory is taken for it, so a hostile file costs no more
than its own bytes. Whoever cuts, changes or lies in a file gets a ModelFileError with the reason.
"""

from engine.gguf.reader import GGUF, TensorEntry
from engine.gguf.split import piece_paths, split_name
from engine.gguf.strings import StringArray
from engine.gguf.types import GGML_TYPES, GGMLType, type_named

__all__ = [
    "GGML_TYPES",
    "GGUF",
    "GGMLType",
    "StringArray",
    "TensorEntry",
    "piece_paths",
    "split_name",
    "type_named",
]
