"""Row group of Q8_0: four blocks (128 weights) at once.

Prepared group, 192 bytes: int8 x[128], scales f32[4], -offset * sum f32[4].
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.compute.cpu.kernels.formats import FORMATS
from engine.compute.cpu.kernels.inputs import int32x16, largest32, steps
from engine.compute.cpu.kernels.row_groups import RowGroup, ending
from engine.compute.cpu.kernels.unpack import bytes64_q8_0
from engine.native.simd import (
    I16,
    I64,
    callee,
    callee_out_of_line,
    dot_bytes,
    f16_to_f32_ir,
    f32x4,
    fma,
    i32_to_i8,
    load_f32x4,
    load_i8x64,
    load_ir,
    shuffle,
    store_f32,
    store_i8x16,
    sum_i32,
    to_f32,
    zero_i8x16,
    zero_i32x16,
)

BLOCK = 34
offset = FORMATS["q8_0"].offset
N_BYTES = 4 * BLOCK


@callee_out_of_line
def prepare(x, n, out):
    n_blocks = n // 32
    for g in range((n_blocks + 3) // 4):
        first = min(4 * g, n_blocks - 4)
        for i in range(4):
            low = high = zero_i8x16()
            scale = total = np.float32(0)
            if first + i >= 4 * g:
                block = x + (first + i) * 128
                scale, inverse = steps(largest32(block))
                a, b = int32x16(block, inverse), int32x16(block + 64, inverse)
                low, high, total = i32_to_i8(a), i32_to_i8(b), np.float32(sum_i32(a + b))
            store_i8x16(out + i * 32, low)
            store_i8x16(out + i * 32 + 16, high)
            store_f32(out + 128 + i * 4, scale)
            store_f32(out + 144 + i * 4, total * np.float32(-offset))
        out += 192


@intrinsic
def scales4(typing, p):
    """The scales of four blocks."""

    def emit(context, b, sig, a):
        packed = ir.Constant(I64, 0)  # in a general register: those have time to spare here
        for i in range(4):
            half = b.zext(load_ir(b, a[0], I16, i * BLOCK), I64)
            packed = b.or_(packed, b.shl(half, I64(16 * i)))
        return f16_to_f32_ir(b, b.bitcast(packed, ir.VectorType(I16, 4)))

    return f32x4(types.int64), emit


eight_lanes_01 = shuffle(f32x4, [0] * 8 + [1] * 8)
eight_lanes_23 = shuffle(f32x4, [2] * 8 + [3] * 8)


@callee
def group(p, px, acc, side):
    d = scales4(p) * load_f32x4(px + 128)
    s0 = dot_bytes(zero_i32x16(), bytes64_q8_0(p, 0), load_i8x64(px))
    s1 = dot_bytes(zero_i32x16(), bytes64_q8_0(p, 1), load_i8x64(px + 64))
    acc = fma(to_f32(s0), eight_lanes_01(d, d), acc)
    side = fma(d, load_f32x4(px + 144), side)
    return fma(to_f32(s1), eight_lanes_23(d, d), acc), side


def row_group(name):
    """Return the row group of Q8_0."""
    return RowGroup(128, N_BYTES, 192, 512, 4096, prepare, group, ending(group, N_BYTES))
