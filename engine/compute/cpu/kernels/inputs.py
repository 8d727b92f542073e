"""Input rows of a product: the fused transform, and quantization to int8 blocks."""

import numpy as np

from engine.compute.cpu.kernels.activation import gelu, silu
from engine.compute.cpu.kernels.norm import rms_norm_row
from engine.compute.cpu.kernels.rows import load_upto, store_upto
from engine.compute.cpu.kernels.words import word, word_f32
from engine.compute.cpu.signatures import TRANSFORMS
from engine.native.simd import (
    callee,
    callee_out_of_line,
    i32_to_i8,
    load_f32x16,
    max_f32,
    round_i32,
    splat_f32,
    vabs,
    vmax,
)

PLAIN, RMS_NORM, SILU, GELU = range(len(TRANSFORMS))


@callee_out_of_line
def transformed(transform, x, x2, norm, eps, n, out):
    """Address of the f32[n] row to multiply: x itself, or what the transform wrote to out."""
    if transform == PLAIN:
        return x
    if transform == RMS_NORM:
        rms_norm_row(x, n, norm, 0, eps, out)
        return out
    for i in range(0, n, 16):
        v, u = load_upto(x + 4 * i, n - i), load_upto(x2 + 4 * i, n - i)
        store_upto(out + 4 * i, silu(v, u) if transform == SILU else gelu(v, u), n - i)
    return out


@callee
def input_row(args, W, t, slot, n, out):
    """Row t of the input named by the words W, slot bytes on, transformed: its address, or out."""
    return transformed(
        word(args, W.transform),
        word(args, W.x) + t * word(args, W.ldx) + slot,
        word(args, W.x2) + t * word(args, W.ldx2) + slot,
        word(args, W.norm),
        word_f32(args, W.eps),
        n,
        out,
    )


@callee
def largest32(x):
    """Largest size of 32 floats at x."""
    return max_f32(vmax(vabs(load_f32x16(x)), vabs(load_f32x16(x + 64))))


@callee
def largest256(x):
    """Largest size of 256 floats at x."""
    m = vmax(vabs(load_f32x16(x)), vabs(load_f32x16(x + 64)))
    for i in range(128, 1024, 128):
        m = vmax(m, vmax(vabs(load_f32x16(x + i)), vabs(load_f32x16(x + i + 64))))
    return max_f32(m)


@callee
def steps(largest):
    """Scale of int8 values up to `largest`, and its inverse (0 where all are 0)."""
    return largest / np.float32(127), np.float32(127) / largest if largest > 0 else np.float32(0)


@callee
def int32x16(x, inverse):
    """16 floats at x -> int32 in [-127, 127]."""
    return round_i32(load_f32x16(x) * splat_f32(inverse))


@callee
def int8x16(x, inverse):
    """16 floats at x -> int8."""
    return i32_to_i8(int32x16(x, inverse))
