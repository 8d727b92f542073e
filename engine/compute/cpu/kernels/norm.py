"""RMS norm, layer norm, and a branch that is normalised before it is added."""

import math

import numpy as np

from engine.compute.cpu.kernels.rows import load_upto, store_upto
from engine.compute.cpu.kernels.words import NONE, count, indices, word, word_f32
from engine.native.simd import (
    callee,
    callee_out_of_line,
    fma,
    load_f32x16,
    splat_f32,
    sum_f32,
    zero_f32x16,
)

NORM = indices("pointwise/rms_norm")
POST = indices("pointwise/post_norm_add")


@callee
def square_sum(x, n):
    """Sum of the squares of n floats."""
    s0 = s1 = zero_f32x16()
    pairs = n // 32 * 32
    for i in range(0, pairs, 32):
        v0, v1 = load_f32x16(x + 4 * i), load_f32x16(x + 4 * i + 64)
        s0, s1 = fma(v0, v0, s0), fma(v1, v1, s1)
    for i in range(pairs, n, 16):
        v0 = load_upto(x + 4 * i, n - i)
        s0 = fma(v0, v0, s0)
    return sum_f32(s0 + s1)


@callee
def row_sum(x, n):
    """Sum of n floats."""
    s = zero_f32x16()
    for i in range(0, n, 16):
        s = s + load_upto(x + 4 * i, n - i)
    return sum_f32(s)


@callee
def affine(v, weight, bias, i, n):
    """v * weight[i:] + bias[i:], the first min(n, 16) lanes; either address may be 0."""
    if weight:
        v = v * load_upto(weight + 4 * i, n)
    if bias:
        v = v + load_upto(bias + 4 * i, n)
    return v


@callee_out_of_line
def rms_norm_row(x, n, weight, bias, eps, out):
    """out = x / sqrt(mean(x^2) + eps) * weight + bias over n floats; out may be x."""
    mean = square_sum(x, n) / np.float32(n)
    r = splat_f32(np.float32(1) / np.float32(math.sqrt(mean + eps)))
    for i in range(0, n, 16):
        v = load_upto(x + 4 * i, n - i) * r
        store_upto(out + 4 * i, affine(v, weight, bias, i, n - i), n - i)


@callee
def layer_norm_row(x, n, weight, bias, eps, out):
    """out = (x - mean) / sqrt(variance + eps) * weight + bias over n floats; out may be x."""
    mean = splat_f32(row_sum(x, n) / np.float32(n))
    for i in range(0, n, 16):
        store_upto(out + 4 * i, load_upto(x + 4 * i, n - i) - mean, n - i)
    variance = square_sum(out, n) / np.float32(n)
    r = splat_f32(np.float32(1) / np.float32(math.sqrt(variance + eps)))
    for i in range(0, n, 16):
        v = load_upto(out + 4 * i, n - i) * r
        store_upto(out + 4 * i, affine(v, weight, bias, i, n - i), n - i)


def _over_groups(norm_row):
    """Make a kernel that normalises every stretch of every row with norm_row."""

    def kernel(args, thread, n_threads):
        n, n_groups = word(args, NORM.n), word(args, NORM.n_groups)
        weight, bias = word(args, NORM.weight), word(args, NORM.bias)
        for item in range(thread, count(args, NORM.n_rows) * n_groups, n_threads):
            t, g = item // n_groups, item % n_groups
            step = g * word(args, NORM.group_stride)
            norm_row(
                word(args, NORM.x) + t * word(args, NORM.ldx) + g * n * 4,
                n,
                weight + step if weight else NONE,
                bias + step if bias else NONE,
                word_f32(args, NORM.eps),
                word(args, NORM.out) + t * word(args, NORM.ldo) + g * n * 4,
            )

    return kernel


rms_norm, layer_norm = _over_groups(rms_norm_row), _over_groups(layer_norm_row)


def post_norm_add(args, thread, n_threads):
    """x += rms_norm(y) * weight, row by row."""
    n, weight = word(args, POST.n), word(args, POST.weight)
    for t in range(thread, count(args, POST.n_rows), n_threads):
        x = word(args, POST.x) + t * word(args, POST.ldx)
        y = word(args, POST.y) + t * word(args, POST.ldy)
        mean = square_sum(y, n) / np.float32(n)
        r = splat_f32(np.float32(1) / np.float32(math.sqrt(mean + word_f32(args, POST.eps))))
        for i in range(0, n, 16):
            v = affine(load_upto(y + 4 * i, n - i) * r, weight, NONE, i, n - i)
            store_upto(x + 4 * i, load_upto(x + 4 * i, n - i) + v, n - i)
