"""Row groups of Q4_K, Q5_K and Q6_K: one superblock of 256 weights, scaled in integers.

The input has one scale per 256 values, so that a sub-block's sum times its 6- or 8-bit scale can be
accumulated as int32 (every factor fits 16 bits) and only the total becomes a float.

Prepared group of Q4_K and Q5_K, 384 bytes: int8 x[256], scale f32 and its negative at 256, sums of
the eight sub-blocks i32[16] (8 used) at 320. Sub-blocks lie in the order 0 2 1 3 4 6 5 7: what the
low and then the high nibbles of 64 bytes hold. Prepared group of Q6_K, 576 bytes: int8 x[256] in
order, scale f32 at 256, offset lanes i32[4][16] (-32 * sum) at 320.
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
    u32_scales_k,
)
from engine.native.simd import (
    I32,
    callee,
    callee_out_of_line,
    constant,
    converter,
    dot_i16,
    dot_u7i8,
    fma,
    i8x16,
    i16x16,
    i32_to_i8,
    i32x16,
    ir_type,
    load_f16,
    load_f32,
    load_i8x16,
    load_i8x64,
    load_i32x16,
    load_u8x64,
    shuf,
    splat_f32,
    splat_i32,
    store_f32,
    store_i8x16,
    store_i32,
    store_i32x16,
    sum_i32,
    to_f32,
    u8x16,
    u8x64,
    zero_i32x16,
)


# ---------------------------------------------------------------- Q4_K, Q5_K
@callee_out_of_line
def prepare_mins(x, n, out):
    for _ in range(n // 256):
        scale, inverse = steps(largest256(x))
        store_i32x16(out + 320, zero_i32x16())
        for s in range(8):
            place = out + (s // 4 * 128 + s % 2 * 64 + s % 4 // 2 * 32)
            low, high = int32x16(x, inverse), int32x16(x + 64, inverse)
            store_i8x16(place, i32_to_i8(low))
            store_i8x16(place + 16, i32_to_i8(high))
            store_i32(out + 320 + 4 * s, sum_i32(low + high))
            x += 128
        store_f32(out + 256, scale)
        out += 384


@intrinsic
def bytes16(typing, a0, a1, a2, a3):
    """Four u32 -> u8x16."""

    def emit(context, b, sig, a):
        v = ir.Constant(ir.VectorType(I32, 4), None)
        for i, x in enumerate(a):
            v = b.insert_element(v, x, I32(i))
        return b.bitcast(v, ir_type(u8x16))

    return u8x16(*[types.uint32] * 4), emit


def _spread(lanes):
    """Make spread(bytes): lane i of the i32x16 is byte lanes[i], or 0 where that is None."""

    @intrinsic
    def spread(typing, x):
        def emit(context, b, sig, a):
            places = [k for lane in lanes for k in ((16 if lane is None else lane), 16, 16, 16)]
            zero = ir.Constant(a[0].type, None)
            return b.bitcast(shuf(b, a[0], zero, places), ir_type(i32x16))

        return i32x16(u8x16), emit

    return spread


# Bytes of u32_scales_k: scales 0-7, then mins 0-7.
scales_0_2, scales_1_3, scales_4_6, scales_5_7 = (
    _spread([first] * 8 + [first + 2] * 8) for first in (0, 1, 4, 5)
)
mins_0_7 = _spread([*range(8, 16), *[None] * 8])


@callee
def scaled(s0, s1, s2, s3, p, px, acc):
    """acc + the four vectors of sums, times the scales at p, minus the mins there."""
    b0, b1, m0, m1 = u32_scales_k(p + 4)
    scales = bytes16(b0, b1, m0, m1)
    s = dot_i16(zero_i32x16(), s0, scales_0_2(scales))
    s = dot_i16(s, s1, scales_1_3(scales))
    s = dot_i16(s, s2, scales_4_6(scales))
    s = dot_i16(s, s3, scales_5_7(scales))
    m = dot_i16(zero_i32x16(), load_i32x16(px + 320), mins_0_7(scales))
    d = load_f32(px + 256)
    acc = fma(to_f32(s), splat_f32(d * load_f16(p)), acc)
    return fma(to_f32(m), splat_f32(-d * load_f16(p + 2)), acc)


@callee
def group_q4_k(p, px, acc):
    q0, q1 = load_u8x64(p + 16), load_u8x64(p + 80)
    z = zero_i32x16()
    s0 = dot_u7i8(z, low_nibbles(q0), load_i8x64(px))
    s1 = dot_u7i8(z, high_nibbles(q0), load_i8x64(px + 64))
    s2 = dot_u7i8(z, low_nibbles(q1), load_i8x64(px + 128))
    s3 = dot_u7i8(z, high_nibbles(q1), load_i8x64(px + 192))
    return scaled(s0, s1, s2, s3, p, px, acc)


bit_0_2, bit_1_3, bit_4_6, bit_5_7 = (
    constant(u8x64, [1 << first] * 32 + [4 << first] * 32) for first in (0, 1, 4, 5)
)


@callee
def group_q5_k(p, px, acc):
    q0, q1, fifth = load_u8x64(p + 48), load_u8x64(p + 112), twice(p + 16)
    z = zero_i32x16()
    w0 = low_nibbles(q0) | sixteen_by_mask(fifth, bit_0_2())
    w1 = high_nibbles(q0) | sixteen_by_mask(fifth, bit_1_3())
    w2 = low_nibbles(q1) | sixteen_by_mask(fifth, bit_4_6())
    w3 = high_nibbles(q1) | sixteen_by_mask(fifth, bit_5_7())
    s0, s1 = dot_u7i8(z, w0, load_i8x64(px)), dot_u7i8(z, w1, load_i8x64(px + 64))
    s2, s3 = dot_u7i8(z, w2, load_i8x64(px + 128)), dot_u7i8(z, w3, load_i8x64(px + 192))
    return scaled(s0, s1, s2, s3, p, px, acc)


# ---------------------------------------------------------------- Q6_K
@callee_out_of_line
def prepare_q6_k(x, n, out):
    for _ in range(n // 256):
        scale, inverse = steps(largest256(x))
        for i in range(16):
            store_i8x16(out + 16 * i, int8x16(x + 64 * i, inverse))
        for i in range(0, 256, 64):
            sums = dot_u7i8(zero_i32x16(), u8(1), load_i8x64(out + i))
            store_i32x16(out + 320 + i, sums * splat_i32(np.int32(-32)))
        store_f32(out + 256, scale)
        x += 1024
        out += 576


i8_to_i16 = converter(i8x16, i16x16)


def _spread_words(first):
    """Make spread(words): words first .. first+3, four i32 lanes each, upper halves zero."""

    @intrinsic
    def spread(typing, x):
        def emit(context, b, sig, a):
            places = [k for lane in range(16) for k in (first + lane // 4, 16)]
            zero = ir.Constant(a[0].type, None)
            return b.bitcast(shuf(b, a[0], zero, places), ir_type(i32x16))

        return i32x16(i16x16), emit

    return spread


scales_a, scales_b, scales_c, scales_d = (_spread_words(first) for first in (0, 4, 8, 12))


@callee
def group_q6_k(p, px, acc):
    scales = i8_to_i16(load_i8x16(p + 192))
    s0 = dot_u7i8(load_i32x16(px + 320), bytes64_q6_k(p, 0), load_i8x64(px))
    s1 = dot_u7i8(load_i32x16(px + 384), bytes64_q6_k(p, 1), load_i8x64(px + 64))
    s2 = dot_u7i8(load_i32x16(px + 448), bytes64_q6_k(p, 2), load_i8x64(px + 128))
    s3 = dot_u7i8(load_i32x16(px + 512), bytes64_q6_k(p, 3), load_i8x64(px + 192))
    s = dot_i16(zero_i32x16(), s0, scales_a(scales))
    s = dot_i16(s, s1, scales_b(scales))
    s = dot_i16(s, s2, scales_c(scales))
    s = dot_i16(s, s3, scales_d(scales))
    return fma(to_f32(s), splat_f32(load_f32(px + 256) * load_f16(p + 208)), acc)


_GROUPS = {
    "q4_k": (144, 384, prepare_mins, group_q4_k),
    "q5_k": (176, 384, prepare_mins, group_q5_k),
    "q6_k": (210, 576, prepare_q6_k, group_q6_k),
}


def row_group(name):
    """Return the row group of a K format; its rows are whole superblocks."""
    n_bytes, prepared, prepare, group = _GROUPS[name]
    return RowGroup(256, n_bytes, prepared, prepare, group, ending(group, n_bytes))
