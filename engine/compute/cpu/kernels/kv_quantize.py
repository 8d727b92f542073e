"""From 32 floats to the codes of a quantized block, as the reference quantizes K and V.

encode(x, out) reads f32[32] at x and writes u8[32] codes at out, then d and m as f32.
"""

import numpy as np
from numba import types

from engine.compute.cpu.kernels.inputs import largest32
from engine.native.simd import (
    callee,
    f32_to_i32,
    i32_to_i8,
    load_f32,
    load_f32x16,
    max_f32,
    select_lt_f32,
    splat_f32,
    store_f32,
    store_i8x16,
    sum_f32,
    vmax,
    vmin,
    zero_f32x16,
)

IQ4_VALUES = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
LEAST = np.float32(1e-15)  # a block that is smaller than this is zero
ZERO = np.float32(0)


@callee
def signed_largest(x):
    """The value of largest size among 32 floats, the first of several."""
    largest = largest32(x)
    for i in range(32):
        v = load_f32(x + 4 * i)
        if abs(v) == largest:
            return v
    return ZERO


@callee
def inverse(d):
    """1 / d, 0 for 0."""
    return np.float32(1) / d if d != 0 else ZERO


@callee
def store_codes(out, at, v):
    """Store 16 floats, cut to whole numbers, as bytes."""
    store_i8x16(out + at, i32_to_i8(f32_to_i32(v)))


@callee
def store_scales(out, d, m):
    """Store what a code is multiplied by and what is added."""
    store_f32(out + 32, d)
    store_f32(out + 36, m)


@callee
def q8_0(x, out):
    """Codes -127 .. 127, halves away from zero."""
    d = largest32(x) / np.float32(127)
    factor, half, zero = splat_f32(inverse(d)), splat_f32(np.float32(0.5)), zero_f32x16()
    for i in range(2):
        v = load_f32x16(x + 64 * i) * factor
        store_codes(out, 16 * i, v + select_lt_f32(v, zero, zero - half, half))
    store_scales(out, d, ZERO)


def symmetric(offset):
    """Make the encoder of codes 0 .. 2 offset - 1, the value of largest size becoming code 0."""
    top, up = np.float32(2 * offset - 1), np.float32(offset + 0.5)

    @callee
    def encode(x, out):
        d = signed_largest(x) / np.float32(-offset)
        factor, rounding, most = splat_f32(inverse(d)), splat_f32(up), splat_f32(top)
        for i in range(2):
            v = load_f32x16(x + 64 * i) * factor + rounding
            store_codes(out, 16 * i, vmin(v, most))
        store_scales(out, d, ZERO)

    return encode


def with_minimum(top):
    """Make the encoder of codes 0 .. top above the smallest value."""
    top = np.float32(top)

    @callee
    def encode(x, out):
        a, b = load_f32x16(x), load_f32x16(x + 64)
        m = -max_f32(zero_f32x16() - vmin(a, b))
        d = (max_f32(vmax(a, b)) - m) / top
        factor, half = splat_f32(inverse(d)), splat_f32(np.float32(0.5))
        least, most = splat_f32(m), splat_f32(top)
        store_codes(out, 0, vmin((a - least) * factor + half, most))
        store_codes(out, 16, vmin((b - least) * factor + half, most))
        store_scales(out, d, m)

    return encode


@callee
def iq4_nl(x, out):
    """Codes of the nearest table value; then the scale that fits them best, squares as weights."""
    largest = signed_largest(x)
    if abs(largest) < LEAST:
        largest = ZERO
    factor = splat_f32(inverse(largest / np.float32(IQ4_VALUES[0])))
    one, zero = splat_f32(np.float32(1)), zero_f32x16()
    along, square = zero, zero
    for i in range(2):
        v = load_f32x16(x + 64 * i)
        scaled, code, value = v * factor, zero, splat_f32(np.float32(IQ4_VALUES[0]))
        for k in range(1, 16):
            lower, upper = np.float32(IQ4_VALUES[k - 1]), np.float32(IQ4_VALUES[k])
            middle = splat_f32((lower + upper) * np.float32(0.5))
            code = code + select_lt_f32(scaled, middle, zero, one)
            value = value + select_lt_f32(scaled, middle, zero, splat_f32(upper - lower))
        along = along + v * v * v * value
        square = square + v * v * value * value
        store_codes(out, 16 * i, code)
    total = sum_f32(square)
    d = sum_f32(along) / total if total > 0 else ZERO
    store_scales(out, d if largest != 0 else ZERO, types.float32(ZERO))
