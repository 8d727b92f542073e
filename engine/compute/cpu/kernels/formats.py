"""FORMATS: one row per quantized weight type; a further type is a row and its unpack function.

A weight is d * (u - offset), or d * u + m for formats with mins, where u is the byte from `unpack`
 and d, m belong to `per_scale` consecutive weights.
"""

from collections import namedtuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.compute.cpu.kernels import unpack
from engine.native.simd import (
    BYTES,
    I8,
    I32,
    callee,
    constant,
    f32x16,
    halves1,
    halves2,
    i8_to_f32,
    ir_type,
    load_f16,
    load_i8x16,
    store_f32,
    store_f32x16,
)

# values, n_bytes: of one block. kind of u: see dot_ir. unpack(p, j): see unpack.py.
# scales(p, n, out): the scales of 32 * n weights at p, n <= 8; out is f32[16]: eight scales then
# eight mins, or sixteen scales of 16 weights.
Format = namedtuple("Format", "name values n_bytes per_scale offset has_min kind unpack scales")


def _plain_scales(n_bytes, has_min):
    """Make scales() of blocks that start with a half d (and a half m)."""

    @callee
    def scales(p, n, out):
        for i in range(n):
            store_f32(out + 4 * i, load_f16(p + i * n_bytes))
            if has_min:
                store_f32(out + 32 + 4 * i, load_f16(p + i * n_bytes + 2))

    return scales


@intrinsic
def _u8_lanes(typing, a0, a1, a2, a3):
    """Four u32 of bytes -> f32x16."""

    def emit(context, b, sig, a):
        v = ir.Constant(ir.VectorType(I32, 4), None)
        for i, x in enumerate(a):
            v = b.insert_element(v, x, I32(i))
        return b.uitofp(b.bitcast(v, ir.VectorType(I8, 16)), ir_type(f32x16))

    return f32x16(*[types.uint32] * 4), emit


minus_last_eight = constant(f32x16, [1.0] * 8 + [-1.0] * 8)


@callee
def _scales_k(p, n, out):
    """Eight 6-bit scales and mins, times the halves d and -dmin."""
    s0, s1, m0, m1 = unpack.u32_scales_k(p + 4)
    store_f32x16(out, _u8_lanes(s0, s1, m0, m1) * halves2(p, p + 2) * minus_last_eight())


@callee
def _scales_q6_k(p, n, out):
    """Sixteen signed 8-bit scales, times the half d."""
    store_f32x16(out, i8_to_f32(load_i8x16(p + 192)) * halves1(p + 208))


BYTE_OFFSET = 128 if BYTES == "u8" else 0
_Q8_0_SCALES = _plain_scales(34, False)
FORMATS = {
    row.name: row
    for row in (
        Format("q4_0", 32, 18, 32, 8, False, "u4", unpack.bytes64_q4_0, _plain_scales(18, False)),
        Format("q4_1", 32, 20, 32, 0, True, "u4", unpack.bytes64_q4_1, _plain_scales(20, True)),
        Format("q5_0", 32, 22, 32, 16, False, "u5", unpack.bytes64_q5_0, _plain_scales(22, False)),
        Format("q5_1", 32, 24, 32, 0, True, "u5", unpack.bytes64_q5_1, _plain_scales(24, True)),
        Format("q8_0", 32, 34, 32, BYTE_OFFSET, False, BYTES, unpack.bytes64_q8_0, _Q8_0_SCALES),
        Format("q4_k", 256, 144, 32, 0, True, "u4", unpack.bytes64_q4_k, _scales_k),
        Format("q5_k", 256, 176, 32, 0, True, "u5", unpack.bytes64_q5_k, _scales_k),
        Format("q6_k", 256, 210, 16, 32, False, "u6", unpack.bytes64_q6_k, _scales_q6_k),
    )
}


def chunk_bytes(form):
    """Return the bytes of 256 weights of a row."""
    return 256 // form.values * form.n_bytes


def minus(form, d):
    """Return what is added to d * u in a format without mins."""
    return -np.float32(form.offset) * d
