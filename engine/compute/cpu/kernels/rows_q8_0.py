"""Row group of Q8_0: two blocks (64 weights) at once.

Prepared group, 192 bytes: int8 x[64], scale lanes f32[16], offset lanes i32[16] (-128 * sum).
"""

import numpy as np

from engine.compute.cpu.kernels.inputs import int8x16, largest32, steps
from engine.compute.cpu.kernels.row_groups import RowGroup, ending
from engine.compute.cpu.kernels.unpack import bytes64_q8_0, u8
from engine.native.simd import (
    callee,
    callee_out_of_line,
    dot_u8i8,
    fma,
    halves2,
    load_f32x16,
    load_i8x64,
    load_i32x16,
    splat_i32,
    store_f32,
    store_i8x16,
    store_i32x16,
    to_f32,
    zero_i8x16,
    zero_i32x16,
)

N_BYTES = 68


@callee_out_of_line
def prepare(x, n, out):
    n_blocks = n // 32
    for g in range((n_blocks + 1) // 2):
        first = min(2 * g, n_blocks - 2)
        for i in range(2):
            low = high = zero_i8x16()
            scale = np.float32(0)
            if first + i >= 2 * g:
                block = x + (first + i) * 128
                scale, inverse = steps(largest32(block))
                low, high = int8x16(block, inverse), int8x16(block + 64, inverse)
            store_i8x16(out + i * 32, low)
            store_i8x16(out + i * 32 + 16, high)
            for j in range(8):
                store_f32(out + 64 + i * 32 + j * 4, scale)
        sums = dot_u8i8(zero_i32x16(), u8(1), load_i8x64(out))
        store_i32x16(out + 128, sums * splat_i32(np.int32(-128)))
        out += 192


@callee
def group(p, px, acc):
    s = dot_u8i8(load_i32x16(px + 128), bytes64_q8_0(p, 0), load_i8x64(px))
    return fma(to_f32(s) * load_f32x16(px + 64), halves2(p, p + 34), acc)


def row_group(name):
    """Return the row group of Q8_0."""
    return RowGroup(64, N_BYTES, 192, prepare, group, ending(group, N_BYTES))
