"""Rows of a weight matrix as floats: the embedding of each token of a batch."""

import numpy as np

from engine.compute.cpu.kernels.formats import chunk_bytes
from engine.compute.cpu.kernels.rows_float import LOADS
from engine.compute.cpu.kernels.words import indices, word, word_f32
from engine.compute.cpu.signatures import N_TOKENS, TOKENS
from engine.native.simd import (
    bitcaster,
    callee,
    callee_out_of_line,
    copy_bytes,
    i8_to_i32,
    i8x16,
    load_f32,
    load_i32,
    shuffle,
    splat_f32,
    stack,
    store_f32,
    store_f32x16,
    to_f32,
    u8_to_i32,
    u8x16,
    u8x64,
)

EMBED = indices("matmul/embed")
quarters = [shuffle(u8x64, range(16 * i, 16 * i + 16)) for i in range(4)]
as_i8x16 = bitcaster(u8x16, i8x16)
scales_room, block_room = stack(64), stack(128)


def _over_tokens(write_row):
    """Make the kernel that writes row tokens[t] of w for every t."""

    def embed(args, thread, n_threads):
        batch = word(args, EMBED.batch)
        for t in range(thread, word(batch, N_TOKENS), n_threads):
            token = load_i32(word(batch, TOKENS) + 4 * t)
            p = word(args, EMBED.w) + token * word(args, EMBED.row_bytes)
            out = word(args, EMBED.out) + t * word(args, EMBED.ldo)
            write_row(p, word(args, EMBED.n_in), word_f32(args, EMBED.scale), out)

    return {"embed": embed}


def quantized(form):
    """Return embed of a quantized type."""
    per_chunk, unpack, scales = chunk_bytes(form), form.unpack, form.scales
    q0, q1, q2, q3 = quarters

    @callee
    def write16(u, scales_at, i, factor, out):
        d = load_f32(scales_at + i // form_per_scale * 4)
        m = load_f32(scales_at + 32 + i // 32 * 4) if has_min else d * minus_offset
        whole = i8_to_i32(as_i8x16(u)) if is_signed else u8_to_i32(u)
        v = to_f32(whole) * splat_f32(d) + splat_f32(m)
        store_f32x16(out + 4 * i, v * splat_f32(factor))

    form_per_scale, has_min, minus_offset = form.per_scale, form.has_min, np.float32(-form.offset)
    is_legacy, size, is_signed = form.values == 32, form.n_bytes, form.kind == "s8"

    @callee_out_of_line
    def write_row(p, n, factor, out):
        scales_at, spare = scales_room(), block_room()
        for start in range(0, n, 256):
            here = min(256, n - start)
            scales(p, here // 32, scales_at)
            for i in range(0, here, 64):
                q, j = p, i // 64
                if is_legacy and here - i == 32:  # half a pair: nothing is read behind it
                    copy_bytes(p + i // 32 * size, spare, size)
                    q, j = spare, 0
                u = unpack(q, j)
                write16(q0(u, u), scales_at, i, factor, out)
                write16(q1(u, u), scales_at, i + 16, factor, out)
                if here - i > 32:
                    write16(q2(u, u), scales_at, i + 32, factor, out)
                    write16(q3(u, u), scales_at, i + 48, factor, out)
            p += per_chunk
            out += 1024

    return _over_tokens(write_row)


def floating(name):
    """Return embed of a float type."""
    n_bytes, load16, load1 = LOADS[name]

    @callee_out_of_line
    def write_row(p, n, factor, out):
        whole = n // 16 * 16
        for i in range(0, whole, 16):
            store_f32x16(out + 4 * i, load16(p + n_bytes * i) * splat_f32(factor))
        for i in range(whole, n):
            store_f32(out + 4 * i, load1(p + n_bytes * i) * factor)

    return _over_tokens(write_row)
