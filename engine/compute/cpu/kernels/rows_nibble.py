"""Row groups of Q4_0, Q4_1, Q5_0 and Q5_1: four blocks (128 weights) at once.

Prepared group, 256 bytes: int8 x of the low nibbles[64], of the high nibbles[64], scale lanes
f32[16], then offset lanes i32[16] (-offset * sum) or, for formats with mins, scale * sum f32[16].
Lanes 4i .. 4i+3 belong to block i.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.compute.cpu.kernels.inputs import int8x16, largest32, steps
from engine.compute.cpu.kernels.row_groups import RowGroup, ending
from engine.compute.cpu.kernels.unpack import high_nibbles, low_nibbles, u8
from engine.native.simd import (
    FEATURES,
    I1,
    I16,
    I32,
    I64,
    LEVEL,
    callee,
    callee_out_of_line,
    const,
    dot_u7i8,
    f16_to_f32_ir,
    f32x16,
    fma,
    ir_type,
    join,
    load_f32x16,
    load_i8x64,
    load_i32x16,
    load_ir,
    shuf,
    splat_i32,
    store_f32,
    store_f32x16,
    store_i8x16,
    store_i32x16,
    to_f32,
    u8x16,
    u8x64,
    u16x32,
    zero_i8x16,
    zero_i32x16,
)

_BYTE_PERMUTE = LEVEL == "avx512" and "avx512vbmi" in FEATURES


def _ends(b, p, total):
    """Emit the first and the last 64 of `total` bytes at p."""
    return load_ir(b, p, ir_type(u8x64)), load_ir(b, p, ir_type(u8x64), total - 64)


def _index(byte, total):
    """Index of a byte in what _ends gives, joined."""
    return byte if byte < 64 else 64 + byte - (total - 64)


def _quants(n_bytes, at):
    """Make quants(p): the 16-byte nibbles at offset `at` of four blocks -> u8x64."""

    def emit(context, b, sig, a):
        if _BYTE_PERMUTE:  # two loads and one permute
            lanes = [_index(i * n_bytes + at + j, 4 * n_bytes) for i in range(4) for j in range(16)]
            return shuf(b, *_ends(b, a[0], 4 * n_bytes), lanes)
        q = [load_ir(b, a[0], ir_type(u8x16), i * n_bytes + at) for i in range(4)]
        return join(b, join(b, q[0], q[1]), join(b, q[2], q[3]))

    @intrinsic
    def quants(typing, p):
        return u8x64(types.int64), emit

    return quants


def _halves(n_bytes, at):
    """Make halves(p): the halves at offset `at` of four blocks, four lanes each -> f32x16."""

    def emit(context, b, sig, a):
        if _BYTE_PERMUTE:
            ends = [b.bitcast(z, ir_type(u16x32)) for z in _ends(b, a[0], 4 * n_bytes)]
            words = [_index(i * n_bytes + at, 4 * n_bytes) // 2 for i in range(4)]
            return f16_to_f32_ir(b, shuf(b, *ends, [i for i in words for _ in range(4)]))
        v = ir.Constant(ir.VectorType(I16, 8), None)
        for i in range(4):
            v = b.insert_element(v, load_ir(b, a[0], I16, i * n_bytes + at), I32(i))
        f = f16_to_f32_ir(b, v)
        return shuf(b, f, f, [i for i in range(4) for _ in range(4)])

    @intrinsic
    def halves(typing, p):
        return f32x16(types.int64), emit

    return halves


def _fifth_bits(n_bytes, at):
    """Make bits(p): 16 where the fifth bit is set, of the low (at) or high (at + 2) nibbles."""

    def emit(context, b, sig, a):
        m = ir.Constant(I64, 0)
        for i in range(4):
            word = b.zext(load_ir(b, a[0], I16, i * n_bytes + at), I64)
            m = b.or_(m, b.shl(word, I64(16 * i)))
        return b.select(b.bitcast(m, ir.VectorType(I1, 64)), const(u8x64, 16), const(u8x64, 0))

    @intrinsic
    def bits(typing, p):
        return u8x64(types.int64), emit

    return bits


def _preparer(offset):
    """Make prepare(); offset 0 means a format with mins."""

    @callee_out_of_line
    def prepare(x, n, out):
        n_blocks = n // 32
        for g in range((n_blocks + 3) // 4):
            first = min(4 * g, n_blocks - 4)
            for i in range(4):
                low = high = zero_i8x16()
                scale = np.float32(0)
                if first + i >= 4 * g:
                    block = x + (first + i) * 128
                    scale, inverse = steps(largest32(block))
                    low, high = int8x16(block, inverse), int8x16(block + 64, inverse)
                store_i8x16(out + i * 16, low)
                store_i8x16(out + 64 + i * 16, high)
                for j in range(4):
                    store_f32(out + 128 + i * 16 + j * 4, scale)
            s = dot_u7i8(zero_i32x16(), u8(1), load_i8x64(out))
            s = dot_u7i8(s, u8(1), load_i8x64(out + 64))
            if offset:
                store_i32x16(out + 192, s * splat_i32(np.int32(-offset)))
            else:
                store_f32x16(out + 192, to_f32(s) * load_f32x16(out + 128))
            out += 256

    return prepare


def _make(n_bytes, offset, quants_at, fifth_at):
    """Make the row group of one format; fifth_at None means that there are no fifth bits."""
    quants, scale = _quants(n_bytes, quants_at), _halves(n_bytes, 0)
    low = high = callee(lambda p, q: q)
    if fifth_at is not None:
        low_bits, high_bits = _fifth_bits(n_bytes, fifth_at), _fifth_bits(n_bytes, fifth_at + 2)
        low, high = callee(lambda p, q: q | low_bits(p)), callee(lambda p, q: q | high_bits(p))

    @callee
    def sums(p, px, s):
        q = quants(p)
        s = dot_u7i8(s, low(p, low_nibbles(q)), load_i8x64(px))
        s = dot_u7i8(s, high(p, high_nibbles(q)), load_i8x64(px + 64))
        return to_f32(s) * load_f32x16(px + 128)

    @callee
    def with_offset(p, px, acc):
        return fma(sums(p, px, load_i32x16(px + 192)), scale(p), acc)

    minimum = _halves(n_bytes, 2)

    @callee
    def with_mins(p, px, acc):
        acc = fma(load_f32x16(px + 192), minimum(p), acc)
        return fma(sums(p, px, zero_i32x16()), scale(p), acc)

    group = with_offset if offset else with_mins
    return RowGroup(128, 4 * n_bytes, 256, _preparer(offset), group, ending(group, 4 * n_bytes))


def row_group(name):
    """Return the row group of a format."""
    return {
        "q4_0": lambda: _make(18, 8, 2, None),
        "q4_1": lambda: _make(20, 0, 4, None),
        "q5_0": lambda: _make(22, 16, 6, 2),
        "q5_1": lambda: _make(24, 0, 8, 4),
    }[name]()
