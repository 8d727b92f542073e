"""Synthetic models: a real architecture and size with random weights, written as a GGUF file.

Quantized blocks are random bits with block scales of a sane size, so that nothing overflows and
every code path costs what it costs on a real model. The file opens in other programs too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.errors import RequestError, nearest
from engine.gguf import GGMLType, type_named


@dataclass(frozen=True)
class Shape:
    """The numbers of one synthetic decoder."""

    n_layer: int
    n_embd: int
    n_ff: int
    n_head: int
    n_head_kv: int
    head_size: int
    n_vocab: int
    has_output: bool = True  # a matrix of its own; else the embedding serves


SIZES = {
    "1M": Shape(2, 256, 512, 4, 2, 64, 512),
    "15M": Shape(6, 288, 768, 6, 6, 48, 32000, False),
    "135M": Shape(30, 576, 1536, 9, 3, 64, 49152, False),
    "1.1B": Shape(22, 2048, 5632, 32, 4, 64, 32000),
    "3B": Shape(26, 3200, 8640, 32, 32, 100, 32000),
    "8B": Shape(32, 4096, 14336, 32, 8, 128, 128256),
}
ARCHITECTURES = ("llama",)
MIXED = {"Q4_K_M": ("Q4_K", "Q6_K"), "Q5_K_M": ("Q5_K", "Q6_K"), "Q6_K": ("Q6_K", "Q6_K")}
PLAIN = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K")
# Where a block keeps the f16 number that scales all its integers.
SCALE_AT = {"Q6_K": 208}
# The f16 number that shifts them: where it is, and in scales what puts their middle on zero.
SHIFT = {"Q4_1": (2, -7.5), "Q5_1": (2, -15.5), "Q4_K": (2, 7.5), "Q5_K": (2, 15.5)}
# Root mean square of a random integer, times that of the scale that stands with it in the block.
REACH = {"Q4_0": 4.6, "Q4_1": 4.6, "Q5_0": 9.2, "Q5_1": 9.2, "Q8_0": 74.0}
REACH |= {"Q4_K": 4.6 * 36, "Q5_K": 9.2 * 36, "Q6_K": 18.5 * 74}


def write_model(description: str, path: Path) -> None:
    """Write the model that ARCH:SIZE:QUANT describes; raises RequestError for an unknown part."""
    arch, size, quant = _parsed(description)
    shape = SIZES[size]
    import gguf  # slow to import, and needed by no other command

    writer = gguf.GGUFWriter(path, arch)
    _write_numbers(writer, arch, shape, description)
    _write_vocab(writer, shape.n_vocab)
    rng = np.random.default_rng(0)
    tensors = list(_tensors(shape, quant))
    for name, columns, rows, kind in tensors:
        n_bytes = rows * kind.row_bytes(columns)
        raw = None if kind.name in ("F32", "F16") else gguf.GGMLQuantizationType[kind.name]
        dtype = {"F32": np.float32, "F16": np.float16}.get(kind.name, np.uint8)
        width = columns if raw is None else kind.row_bytes(columns)
        dims = [width] if rows == 1 else [rows, width]
        writer.add_tensor_info(name, dims, np.dtype(dtype), n_bytes, raw)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for _, columns, rows, kind in tensors:
        writer.write_tensor_data(_random_rows(rng, kind, rows, columns))
    writer.close()


def _parsed(description: str) -> tuple[str, str, str]:
    parts = description.split(":")
    if len(parts) != 3:
        raise RequestError("A synthetic model is ARCH:SIZE:QUANT, for example llama:1.1B:Q4_0.")
    arch, size, quant = parts
    for value, known in ((arch, ARCHITECTURES), (size, tuple(SIZES)), (quant, (*PLAIN, *MIXED))):
        if value not in known:
            listed = ", ".join(known)
            raise RequestError(f"“{value}” is not one of {listed}.{nearest(value, known)}")
    return arch, size, quant


def _write_numbers(writer: Any, arch: str, shape: Shape, name: str) -> None:
    writer.add_name(name)
    writer.add_context_length(8192)
    writer.add_embedding_length(shape.n_embd)
    writer.add_block_count(shape.n_layer)
    writer.add_feed_forward_length(shape.n_ff)
    writer.add_head_count(shape.n_head)
    writer.add_head_count_kv(shape.n_head_kv)
    writer.add_key_length(shape.head_size)
    writer.add_value_length(shape.head_size)
    writer.add_rope_dimension_count(shape.head_size)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(shape.n_vocab)


def _write_vocab(writer: Any, n_vocab: int) -> None:
    """Write a SentencePiece vocabulary: specials, bytes, then made-up words."""
    tokens = [b"<unk>", b"<s>", b"</s>"] + [b"<0x%02X>" % byte for byte in range(256)]
    types = [2, 3, 3] + [6] * 256
    n_words = n_vocab - len(tokens)
    tokens += ["▁".encode() + b"w%d" % i for i in range(n_words)]
    types += [1] * n_words
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * 259 + [-float(i) for i in range(n_words)])
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def _tensors(shape: Shape, quant: str) -> Iterator[tuple[str, int, int, GGMLType]]:
    """Yield name, columns, rows and type of each tensor; a mix is llama.cpp's medium one."""
    usual, better = (type_named(name) for name in MIXED.get(quant, (quant, quant)))
    single = type_named("F32")
    width, kv_width = shape.n_head * shape.head_size, shape.n_head_kv * shape.head_size
    last = better if quant in MIXED else usual
    yield "token_embd.weight", shape.n_embd, shape.n_vocab, usual if shape.has_output else last
    for i in range(shape.n_layer):
        eighth = shape.n_layer // 8
        is_better = i < eighth or i >= 7 * shape.n_layer // 8 or (i - eighth) % 3 == 2
        v_and_down = better if is_better else usual
        for part, columns, rows, kind in (
            ("attn_norm", shape.n_embd, 1, single),
            ("attn_q", shape.n_embd, width, usual),
            ("attn_k", shape.n_embd, kv_width, usual),
            ("attn_v", shape.n_embd, kv_width, v_and_down),
            ("attn_output", width, shape.n_embd, usual),
            ("ffn_norm", shape.n_embd, 1, single),
            ("ffn_gate", shape.n_embd, shape.n_ff, usual),
            ("ffn_up", shape.n_embd, shape.n_ff, usual),
            ("ffn_down", shape.n_ff, shape.n_embd, v_and_down),
        ):
            yield f"blk.{i}.{part}.weight", columns, rows, kind
    yield "output_norm.weight", shape.n_embd, 1, single
    if shape.has_output:
        yield "output.weight", shape.n_embd, shape.n_vocab, last


def _random_rows(rng: np.random.Generator, kind: GGMLType, rows: int, columns: int) -> np.ndarray:
    """Return the stored form of a random matrix: floats, or uint8 [rows, row bytes]."""
    if rows == 1:
        return np.ones(columns, np.float32)
    if kind.name in ("F32", "F16", "BF16"):
        values = rng.standard_normal((rows, columns), np.float32) / np.float32(np.sqrt(columns))
        if kind.name == "BF16":
            return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
        return values.astype(np.float16 if kind.name == "F16" else np.float32)
    if columns % kind.block_len:
        raise RequestError(
            f"Rows of {columns} weights cannot be stored as {kind.name}: choose another type."
        )
    n_blocks = rows * columns // kind.block_len
    blocks = rng.integers(0, 256, (n_blocks, kind.block_bytes), np.uint8)
    scale = 1 / (np.sqrt(columns) * REACH[kind.name])
    _put_f16(blocks, SCALE_AT.get(kind.name, 0), scale)
    if kind.name in SHIFT:
        offset, n_scales = SHIFT[kind.name]
        _put_f16(blocks, offset, scale * n_scales)
    return blocks.reshape(rows, -1)


def _put_f16(blocks: np.ndarray, offset: int, value: float) -> None:
    blocks[:, offset : offset + 2] = np.frombuffer(np.float16(value).tobytes(), np.uint8)
