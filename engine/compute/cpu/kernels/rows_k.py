"""Row groups of Q4_K, Q5_K and Q6_K: one superblock of 256 weights, scaled in integers.

Decision: the input has one scale per 256 values, so that a sum of four products times its 6- or
8-bit scale is accumulated as int32 (both fit 16 bits) and only the superblock's total becomes a
float. Scaling every sub-block as floats took a third longer.

Prepared group of Q4_K and Q5_K, 320 bytes: int8 x[256], sums of the eight sub-blocks i16[8], then
f32[4]: scale, -scale, 0, 0. Sub-blocks of x lie in the order 0 2 1 3 4 6 5 7: what the low and then
the high nibbles of 64 bytes hold. Prepared group of Q6_K, 576 bytes: int8 x[256] in order, offset
lanes i32[4][16] (-32 * sum), scale f32.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.compute.cpu.kernels.inputs import int8x16, int32x16, largest256, steps
from engine.compute.cpu.kernels.row_groups import RowGroup, ending
from engine.compute.cpu.kernels.unpack import (
    bytes64_q6_k,
    high_nibbles,
    low_nibbles,
    sixteen_by_mask,
    twice,
    u8,
)
from engine.native.simd import (
    I8,
    callee,
    callee_out_of_line,
    constant,
    converter,
    dot_pairs,
    dot_u7i8,
    f32x4,
    fma,
    i8x16,
    i16x8,
    i16x16,
    i32_to_i8,
    i32x4,
    ir_type,
    load_f16,
    load_f16x4,
    load_f32,
    load_f32x4,
    load_i8x16,
    load_i8x64,
    load_i16x8,
    load_i32x16,
    load_u8x64,
    load_u32,
    load_u64,
    pack_i16,
    shuffle,
    splat_f32,
    splat_i32,
    store_f32,
    store_i8x16,
    store_i16,
    store_i32x16,
    sum_i32,
    to_f32,
    u8x64,
    zero_i32x4,
    zero_i32x16,
)


# ---------------------------------------------------------------- Q4_K, Q5_K
@callee_out_of_line
def prepare_mins(x, n, out):
    for _ in range(n // 256):
        scale, inverse = steps(largest256(x))
        for s in range(8):
            place = out + (s // 4 * 128 + s % 2 * 64 + s % 4 // 2 * 32)
            low, high = int32x16(x, inverse), int32x16(x + 64, inverse)
            store_i8x16(place, i32_to_i8(low))
            store_i8x16(place + 16, i32_to_i8(high))
            store_i16(out + 256 + 2 * s, np.int16(sum_i32(low + high)))
            x += 128
        store_f32(out + 272, scale)
        store_f32(out + 276, -scale)
        store_f32(out + 280, np.float32(0))
        store_f32(out + 284, np.float32(0))
        out += 320


@intrinsic
def words8(typing, x):
    """Eight bytes -> i16x8."""

    def emit(context, b, sig, a):
        return b.zext(b.bitcast(a[0], ir.VectorType(I8, 8)), ir_type(i16x8))

    return i16x8(types.uint64), emit


@callee
def scales_and_mins(p):
    """The twelve bytes at p + 4: eight 6-bit scales and eight mins, a byte each."""
    packed, last = load_u64(p + 4), types.uint64(load_u32(p + 12))
    low = packed & np.uint64(0x3F3F3F3F3F3F3F3F)
    high = (last | (last << np.uint64(28))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    high |= (packed >> np.uint64(2)) & np.uint64(0x3030303030303030)
    scales = (low & np.uint64(0xFFFFFFFF)) | (high << np.uint64(32))
    return scales, (low >> np.uint64(32)) | (high & np.uint64(0xFFFFFFFF00000000))


def _packed_scales(first):
    """Lanes of scales for what pack_i16 makes of the sums of sub-blocks first .. first + 3."""
    halves = [[first] * 4 + [first + 1] * 4, [first + 2] * 4 + [first + 3] * 4]
    return halves[0] * 2 + halves[1] * 2


scales_0_3, scales_4_7 = (shuffle(i16x8, _packed_scales(first)) for first in (0, 4))
first_of_4, second_of_4 = shuffle(f32x4, [0] * 16), shuffle(f32x4, [1] * 4)
to_f32x4 = converter(i32x4, f32x4)


@callee
def scaled(s0, s1, s2, s3, p, px, acc, side):
    """Both sums with the superblock at p, whose unscaled sums are s0 .. s3."""
    scale_bytes, min_bytes = scales_and_mins(p)
    scales = words8(scale_bytes)
    s = dot_pairs(zero_i32x16(), pack_i16(s0, s1), scales_0_3(scales, scales))
    s = dot_pairs(s, pack_i16(s2, s3), scales_4_7(scales, scales))
    m = dot_pairs(zero_i32x4(), load_i16x8(px + 256), words8(min_bytes))
    d = load_f16x4(p) * load_f32x4(px + 272)
    side = fma(to_f32x4(m), second_of_4(d, d), side)
    return fma(to_f32(s), first_of_4(d, d), acc), side


@callee
def group_q4_k(p, px, acc, side):
    q0, q1 = load_u8x64(p + 16), load_u8x64(p + 80)
    z = zero_i32x16()
    s0 = dot_u7i8(z, low_nibbles(q0), load_i8x64(px))
    s1 = dot_u7i8(z, high_nibbles(q0), load_i8x64(px + 64))
    s2 = dot_u7i8(z, low_nibbles(q1), load_i8x64(px + 128))
    s3 = dot_u7i8(z, high_nibbles(q1), load_i8x64(px + 192))
    return scaled(s0, s1, s2, s3, p, px, acc, side)


bit_0_2, bit_1_3, bit_4_6, bit_5_7 = (
    constant(u8x64, [1 << first] * 32 + [4 << first] * 32) for first in (0, 1, 4, 5)
)


@callee
def group_q5_k(p, px, acc, side):
    q0, q1, fifth = load_u8x64(p + 48), load_u8x64(p + 112), twice(p + 16)
    z = zero_i32x16()
    w0 = low_nibbles(q0) | sixteen_by_mask(fifth, bit_0_2())
    w1 = high_nibbles(q0) | sixteen_by_mask(fifth, bit_1_3())
    w2 = low_nibbles(q1) | sixteen_by_mask(fifth, bit_4_6())
    w3 = high_nibbles(q1) | sixteen_by_mask(fifth, bit_5_7())
    s0, s1 = dot_u7i8(z, w0, load_i8x64(px)), dot_u7i8(z, w1, load_i8x64(px + 64))
    s2, s3 = dot_u7i8(z, w2, load_i8x64(px + 128)), dot_u7i8(z, w3, load_i8x64(px + 192))
    return scaled(s0, s1, s2, s3, p, px, acc, side)


# ---------------------------------------------------------------- Q6_K
@callee_out_of_line
def prepare_q6_k(x, n, out):
    for _ in range(n // 256):
        scale, inverse = steps(largest256(x))
        for i in range(16):
            store_i8x16(out + 16 * i, int8x16(x + 64 * i, inverse))
        for i in range(0, 256, 64):
            sums = dot_u7i8(zero_i32x16(), u8(1), load_i8x64(out + i))
            store_i32x16(out + 256 + i, sums * splat_i32(np.int32(-32)))
        store_f32(out + 512, scale)
        x += 1024
        out += 576


def _packed_scales_q6(first):
    """As _packed_scales, for 16 weights per scale and vectors of four scales each."""
    return [k for i in range(4) for k in [first + i] * 4 + [first + 4 + i] * 4]


i8_to_i16 = converter(i8x16, i16x16)
scales_0_7, scales_8_15 = (shuffle(i16x16, _packed_scales_q6(first)) for first in (0, 8))


@callee
def group_q6_k(p, px, acc, side):
    scales = i8_to_i16(load_i8x16(p + 192))
    s0 = dot_u7i8(load_i32x16(px + 256), bytes64_q6_k(p, 0), load_i8x64(px))
    s1 = dot_u7i8(load_i32x16(px + 320), bytes64_q6_k(p, 1), load_i8x64(px + 64))
    s2 = dot_u7i8(load_i32x16(px + 384), bytes64_q6_k(p, 2), load_i8x64(px + 128))
    s3 = dot_u7i8(load_i32x16(px + 448), bytes64_q6_k(p, 3), load_i8x64(px + 192))
    s = dot_pairs(zero_i32x16(), pack_i16(s0, s1), scales_0_7(scales, scales))
    s = dot_pairs(s, pack_i16(s2, s3), scales_8_15(scales, scales))
    return fma(to_f32(s), splat_f32(load_f32(px + 512) * load_f16(p + 208)), acc), side


_GROUPS = {
    "q4_k": (144, 320, 0, 3072, prepare_mins, group_q4_k),
    "q5_k": (176, 320, 0, 3072, prepare_mins, group_q5_k),
    "q6_k": (210, 576, 0, 4096, prepare_q6_k, group_q6_k),
}


def row_group(name):
    """Return the row group of a K format; its rows are whole superblocks."""
    n_bytes, prepared, near, page, prepare, group = _GROUPS[name]
    return RowGroup(256, n_bytes, prepared, near, page, prepare, group, ending(group, n_bytes))
