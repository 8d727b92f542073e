"""Mixture of experts: which experts a row goes to, and the weighted sum of what they answer."""

import math

import numpy as np
from numba import types

from engine.compute.cpu.kernels.norm import row_sum
from engine.compute.cpu.kernels.rows import load_upto, n_stretches, store_upto, stretch
from engine.compute.cpu.kernels.words import count, indices, word, word_f32
from engine.compute.cpu.signatures import GATINGS
from engine.native.simd import (
    callee,
    fma,
    load_f32,
    splat_f32,
    store_f32,
    store_i32,
    vexp,
    zero_f32x16,
)

ROUTER, COMBINE = indices("pointwise/router"), indices("pointwise/combine")
SOFTMAX, SIGMOID, SOFTMAX_SELECTED, SQRT_SOFTPLUS = range(len(GATINGS))

LEAST = np.float32(-3.0e38)  # below every selection value
SMALLEST_SUM = np.float32(6.103515625e-5)


@callee
def softmax_row(x, n):
    """x = exp(x - max) / sum over n floats."""
    largest = load_f32(x)
    for i in range(1, n):
        largest = max(largest, load_f32(x + 4 * i))
    m = splat_f32(largest)
    for i in range(0, n, 16):
        store_upto(x + 4 * i, vexp(load_upto(x + 4 * i, n - i) - m), n - i)
    inverse = splat_f32(np.float32(1) / row_sum(x, n))
    for i in range(0, n, 16):
        store_upto(x + 4 * i, load_upto(x + 4 * i, n - i) * inverse, n - i)


@callee
def gate(x, n, gating):
    """Turn n logits into the values that choices and weights are made of, in place."""
    if gating == SOFTMAX:
        softmax_row(x, n)
    elif gating == SIGMOID:
        for i in range(n):
            v = np.float32(math.exp(-load_f32(x + 4 * i)))
            store_f32(x + 4 * i, np.float32(1) / (np.float32(1) + v))
    elif gating == SQRT_SOFTPLUS:
        for i in range(n):
            v = load_f32(x + 4 * i)
            soft = v if v > np.float32(20) else np.float32(math.log1p(math.exp(v)))
            store_f32(x + 4 * i, np.float32(math.sqrt(soft)))


@callee
def selection(x, bias, e):
    """What expert e is chosen by."""
    return load_f32(x + 4 * e) + load_f32(bias + 4 * e) if bias else load_f32(x + 4 * e)


@callee
def group_score(x, bias, first, size):
    """Sum of the two best selection values of a group."""
    best = second = LEAST
    for e in range(first, first + size):
        v = selection(x, bias, e)
        if v > best:
            best, second = v, best
        elif v > second:
            second = v
    return best + second if size > 1 else best


@callee
def allowed_groups(x, bias, n_expert, n_group, n_used):
    """Bits of the groups that take part."""
    if n_group <= 1 or n_used >= n_group:
        return -1
    size, chosen = n_expert // n_group, 0
    for _ in range(n_used):
        best, where = LEAST, -1
        for g in range(n_group):
            if not chosen >> g & 1:
                score = group_score(x, bias, g * size, size)
                if where < 0 or score > best:
                    best, where = score, g
        chosen |= 1 << where
    return chosen


@callee
def next_expert(x, bias, n_expert, groups, group_size, last, last_value):
    """The best expert after `last` in the order (value falling, index rising)."""
    best, where = LEAST, -1
    for e in range(n_expert):
        if groups >> e // group_size & 1:
            v = selection(x, bias, e)
            follows = last < 0 or v < last_value or (v == last_value and e > last)
            if follows and (where < 0 or v > best):
                best, where = v, e
    return where if where >= 0 else (last + 1) % n_expert  # only after NaN: stay in range


@callee
def finish_weights(w, n, gating, normalise, factor):
    """Softmax over the chosen or division by their sum, then the model's factor."""
    if gating == SOFTMAX_SELECTED:
        softmax_row(w, n)
    inverse = np.float32(1)
    if normalise:
        inverse = np.float32(1) / max(row_sum(w, n), SMALLEST_SUM)
    for i in range(n):
        store_f32(w + 4 * i, load_f32(w + 4 * i) * inverse * factor)


def router(args, thread, n_threads):
    """Choose n_used experts for each row; the logits become gate values."""
    n_expert, n_used = word(args, ROUTER.n_expert), word(args, ROUTER.n_used)
    bias, gating, n_group = (
        word(args, ROUTER.bias),
        word(args, ROUTER.gating),
        word(args, ROUTER.n_group),
    )
    group_size = n_expert // max(1, n_group)
    for t in range(thread, count(args, ROUTER.n_rows), n_threads):
        x = word(args, ROUTER.logits) + t * word(args, ROUTER.ldl)
        ids = word(args, ROUTER.ids) + t * word(args, ROUTER.ldi)
        w = word(args, ROUTER.weights) + t * word(args, ROUTER.ldw)
        gate(x, n_expert, gating)
        groups = allowed_groups(x, bias, n_expert, n_group, word(args, ROUTER.n_group_used))
        last, value = np.int64(-1), LEAST
        for i in range(n_used):
            last = next_expert(x, bias, n_expert, groups, group_size, last, value)
            value = selection(x, bias, last)
            store_i32(ids + 4 * i, types.int32(last))
            store_f32(w + 4 * i, load_f32(x + 4 * last))
        factor = word_f32(args, ROUTER.scale)
        finish_weights(w, n_used, gating, word(args, ROUTER.normalise), factor)


def combine(args, thread, n_threads):
    """out = sum of weights[i] * y[i], in the chosen order, plus out if add."""
    n, n_used = word(args, COMBINE.n), word(args, COMBINE.n_used)
    for item in range(thread, n_stretches(count(args, COMBINE.n_rows), n), n_threads):
        t, first, end = stretch(item, n)
        y = word(args, COMBINE.y) + t * word(args, COMBINE.ldy)
        w = word(args, COMBINE.weights) + t * word(args, COMBINE.ldw)
        out = word(args, COMBINE.out) + t * word(args, COMBINE.ldo)
        for i in range(first, end, 16):
            v = load_upto(out + 4 * i, end - i) if word(args, COMBINE.add) else zero_f32x16()
            for e in range(n_used):
                row = load_upto(y + e * word(args, COMBINE.lde) + 4 * i, end - i)
                v = fma(row, splat_f32(load_f32(w + 4 * e)), v)
            store_upto(out + 4 * i, v, end - i)
