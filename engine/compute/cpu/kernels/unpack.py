"""Quantized blocks to bytes: 64 weights of a row in natural order, for every format.

`bytes64_X(p, j)` gives weights 64j .. 64j+63 after address p, where a (super)block starts;
unsigned, but for 8-bit weights on levels whose dot takes them signed (BYTES).
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.native.simd import (
    BYTES,
    I1,
    LEVEL,
    callee,
    concat_u8x32,
    const,
    constant,
    ir_type,
    load_ir,
    load_u8x32,
    load_u8x64,
    load_u32,
    shuf,
    splat_u8,
    u8_as_u16,
    u8x16,
    u8x64,
    u16_as_u8,
    u16x32,
)


@callee
def u8(x):
    """64 copies of a small constant."""
    return splat_u8(types.uint8(x))


@callee
def low_nibbles(q):
    return q & u8(15)


@callee
def high_nibbles(q):
    return u16_as_u8(u8_as_u16(q) >> 4) & u8(15)


@callee
def twice(p):
    """32 bytes at p, two times."""
    q = load_u8x32(p)
    return concat_u8x32(q, q)


@intrinsic
def nibble_pair(typing, p0, p1):
    """Two 16-byte groups of nibbles, each 16 low then 16 high weights -> u8x64."""

    def emit(context, b, sig, a):
        q0, q1 = (load_ir(b, p, ir_type(u8x16)) for p in a)
        q = shuf(b, q0, q1, [*range(16)] * 2 + [*range(16, 32)] * 2)
        if LEVEL == "avx512":  # one variable shift instead of a shift and a blend
            shifts = const(u16x32, ([0] * 8 + [4] * 8) * 2)
            q = b.bitcast(b.lshr(b.bitcast(q, ir_type(u16x32)), shifts), ir_type(u8x64))
            return b.and_(q, const(u8x64, 15))
        low, high = b.and_(q, const(u8x64, 15)), b.lshr(q, const(u8x64, 4))
        return shuf(b, low, high, [i + (64 if i // 16 % 2 else 0) for i in range(64)])

    return u8x64(types.int64, types.int64), emit


@intrinsic
def sixteen_where(typing, bits):
    """64 bits -> u8x64 of 0 or 16: fifth bits in their place."""

    def emit(context, b, sig, a):
        return b.select(b.bitcast(a[0], ir.VectorType(I1, 64)), const(u8x64, 16), const(u8x64, 0))

    return u8x64(types.uint64), emit


@callee
def bytes64_q4_0(p, j):
    return nibble_pair(p + 36 * j + 2, p + 36 * j + 20)


@callee
def bytes64_q4_1(p, j):
    return nibble_pair(p + 40 * j + 4, p + 40 * j + 24)


@callee
def fifth_bits(p0, p1):
    """The fifth bits of two blocks, whose 32 bits each lie at p0 and p1."""
    low, high = types.uint64(load_u32(p0)), types.uint64(load_u32(p1))
    return sixteen_where(low | (high << types.uint64(32)))


@callee
def bytes64_q5_0(p, j):
    p += 44 * j
    return nibble_pair(p + 6, p + 28) | fifth_bits(p + 2, p + 24)


@callee
def bytes64_q5_1(p, j):
    p += 48 * j
    return nibble_pair(p + 8, p + 32) | fifth_bits(p + 4, p + 28)


is_unsigned = BYTES == "u8"


@callee
def bytes64_q8_0(p, j):
    p += 68 * j
    q = concat_u8x32(load_u8x32(p + 2), load_u8x32(p + 36))
    return q ^ u8(128) if is_unsigned else q


low_then_high = constant(u16x32, [0] * 16 + [4] * 16)


@callee
def nibbles_k(p):
    """32 bytes at p: 32 low nibbles, then 32 high ones."""
    return u16_as_u8(u8_as_u16(twice(p)) >> low_then_high()) & u8(15)


@callee
def bytes64_q4_k(p, j):
    return nibbles_k(p + 16 + 32 * j)


@intrinsic
def sixteen_by_mask(typing, q, masks):
    """16 in each byte whose bits meet those of the mask, else 0."""

    def emit(context, b, sig, a):
        met = b.icmp_unsigned("!=", b.and_(*a), const(u8x64, 0))
        return b.select(met, const(u8x64, 16), const(u8x64, 0))

    return u8x64(u8x64, u8x64), emit


one_then_two = constant(u8x64, [1] * 32 + [2] * 32)


@callee
def bytes64_q5_k(p, j):
    masks = u16_as_u8(u8_as_u16(one_then_two()) << (2 * j))
    return nibbles_k(p + 48 + 32 * j) | sixteen_by_mask(twice(p + 16), masks)


up_4_2 = constant(u16x32, [4] * 16 + [2] * 16)
down_0_2 = constant(u16x32, [0] * 16 + [2] * 16)


@callee
def bytes64_q6_k(p, j):
    low = load_u8x64(p + 64 * (j >> 1))
    high = u8_as_u16(twice(p + 128 + 32 * (j >> 1)))
    if j & 1:
        return high_nibbles(low) | (u16_as_u8(high >> down_0_2()) & u8(0x30))
    return low_nibbles(low) | (u16_as_u8(high << up_4_2()) & u8(0x30))


@callee
def u32_scales_k(p):
    """12 bytes at p: eight 6-bit scales and mins -> four u32 of bytes (scales 0-3, 4-7, mins)."""
    u0, u1, u2 = load_u32(p), load_u32(p + 4), load_u32(p + 8)
    six, four, two = np.uint32(0x3F3F3F3F), np.uint32(0x0F0F0F0F), np.uint32(0x30303030)
    shift2, shift4 = np.uint32(2), np.uint32(4)
    return (
        types.uint32(u0 & six),
        types.uint32((u2 & four) | ((u0 >> shift2) & two)),
        types.uint32(u1 & six),
        types.uint32(((u2 >> shift4) & four) | ((u1 >> shift2) & two)),
    )
