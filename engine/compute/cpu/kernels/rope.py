"""Rotary positions: the table of a batch, and the rotation of one head's row."""

import math

from numba import types

from engine.compute.cpu.kernels.rows import load_upto, store_upto
from engine.compute.cpu.kernels.words import indices, inner_word, word, word_f32
from engine.compute.cpu.signatures import N_TOKENS, POSITIONS
from engine.native.simd import (
    callee,
    callee_out_of_line,
    f32x16,
    load_f64,
    load_i32,
    shuffle,
    store_f32,
)

TABLE = indices("pointwise/rope_table")

swap_pairs = shuffle(f32x16, [lane ^ 1 for lane in range(16)])


@callee
def pair_places(i, n_rot, neox):
    """The two dimensions of pair i: halves apart (neox) or side by side."""
    return (i, i + n_rot // 2) if neox else (2 * i, 2 * i + 1)


def rope_table(args, thread, n_threads):
    """Row t: cos of each dimension, then its sine with the sign that the rotation needs."""
    n_rot, neox = word(args, TABLE.n_rot), word(args, TABLE.neox)
    magnitude, half = word_f32(args, TABLE.magnitude), n_rot // 2
    for item in range(thread, inner_word(args, TABLE.batch, N_TOKENS) * half, n_threads):
        t, i = item // half, item % half
        row = word(args, TABLE.table) + t * n_rot * 8
        position = load_i32(inner_word(args, TABLE.batch, POSITIONS) + 4 * t)
        angle = position * load_f64(word(args, TABLE.inv_freq) + 8 * i)
        c = types.float32(math.cos(angle)) * magnitude
        s = types.float32(math.sin(angle)) * magnitude
        first, second = pair_places(i, n_rot, neox)
        store_f32(row + 4 * first, c)
        store_f32(row + 4 * second, c)
        store_f32(row + 4 * (n_rot + first), -s)
        store_f32(row + 4 * (n_rot + second), s)


@callee_out_of_line
def rotate(x, table, n_rot, neox):
    """Rotate the first n_rot floats at x by one row of the table."""
    if neox:
        n = n_rot // 2
        upper, sines = x + 4 * n, table + 12 * n
        for i in range(0, n, 16):
            c, s = load_upto(table + 4 * i, n - i), load_upto(sines + 4 * i, n - i)
            lo, hi = load_upto(x + 4 * i, n - i), load_upto(upper + 4 * i, n - i)
            store_upto(x + 4 * i, lo * c - hi * s, n - i)
            store_upto(upper + 4 * i, hi * c + lo * s, n - i)
    else:
        for i in range(0, n_rot, 16):
            v, c = load_upto(x + 4 * i, n_rot - i), load_upto(table + 4 * i, n_rot - i)
            s = load_upto(table + 4 * (n_rot + i), n_rot - i)
            store_upto(x + 4 * i, v * c + swap_pairs(v, v) * s, n_rot - i)
