"""Into the pages: normalise and rotate q and k, write k and v to their cells, rotate stored K."""

import math

from numba import types

from engine.compute.cpu.kernels import hadamard, kv_types
from engine.compute.cpu.kernels.norm import rms_norm_row
from engine.compute.cpu.kernels.rope import pair_places, rotate
from engine.compute.cpu.kernels.words import NONE, indices, inner_word, padded, word, word_f32
from engine.compute.cpu.signatures import CELLS, N_TOKENS
from engine.native.simd import (
    callee,
    callee_out_of_line,
    load_f32,
    load_f32x16,
    load_f64,
    load_i32,
    stack,
    store_f32,
    store_f32x16,
)

S = indices("attention.f16.f16/store")
T = indices("attention.f16.f16/shift")

TOKENS_PER_ITEM = 16  # neighbouring tokens share cache lines of a K page


@callee
def norm_and_rotate(args, x, t, weight):
    """What a head's row goes through between projection and attention, in place."""
    if weight:
        rms_norm_row(x, word(args, S.head_size_k), weight, NONE, word_f32(args, S.eps), x)
    if word(args, S.table):
        n_rot = word(args, S.n_rot)
        rotate(x, word(args, S.table) + t * n_rot * 8, n_rot, word(args, S.neox))


def store_kernel(k, v):
    """Make the kernel that prepares q and k and fills cells."""
    k, v = kv_types.KV_TYPES[k], kv_types.KV_TYPES[v]
    fill_key, fill_value = k.make_fill_key(), v.make_fill_value()
    rotates_k, rotates_v, room = k.is_rotated, v.is_rotated, stack(4 * hadamard.MOST_VALUES)
    block, block_bytes = k.block, 16 * k.block_bytes
    columns, columns_bytes = v.columns, v.columns_bytes

    @callee_out_of_line
    def fill_k(args, x, h, cell):
        n, size = word(args, S.head_size_k), padded(word(args, S.head_size_k))
        page = word(args, S.k_base) + cell // 32 * word(args, S.k_page_bytes)
        half = page + (h * 2 + cell % 32 // 16) * (size // block * block_bytes)
        fill_key(x, n, half, cell % 16)

    @callee_out_of_line
    def fill_v(args, x, h, cell):
        n, size = word(args, S.head_size_v), padded(word(args, S.head_size_v))
        page = word(args, S.v_base) + cell // 32 * word(args, S.v_page_bytes)
        row = page + (h * 32 + cell % 32) * (size // columns * columns_bytes)
        if rotates_v and hadamard.value_chunk(n):
            rotated = room()
            for i in range(0, 4 * n, 64):
                store_f32x16(rotated + i, load_f32x16(x + i))
            hadamard.rotate_row(rotated, n, hadamard.value_chunk(n))
            x = rotated
        fill_value(x, n, row)

    @callee
    def finish_head(args, x, t, weight):
        norm_and_rotate(args, x, t, weight)
        size = word(args, S.head_size_k)
        if rotates_k and hadamard.key_chunk(size):
            hadamard.rotate_row(x, size, hadamard.key_chunk(size))

    def kernel(args, thread, n_threads):
        n_tokens, n_head = inner_word(args, S.batch, N_TOKENS), word(args, S.n_head)
        n_heads, size = n_head + word(args, S.n_head_kv), word(args, S.head_size_k)
        cells = inner_word(args, S.pool, CELLS)
        n_items = (n_tokens + TOKENS_PER_ITEM - 1) // TOKENS_PER_ITEM * n_heads
        for item in range(thread, n_items, n_threads):
            t0, h = item // n_heads * TOKENS_PER_ITEM, item % n_heads
            for t in range(t0, min(n_tokens, t0 + TOKENS_PER_ITEM)):
                if h < n_head:
                    q = word(args, S.q) + t * word(args, S.ldq) + h * size * 4
                    finish_head(args, q, t, word(args, S.q_norm))
                else:
                    g, cell = h - n_head, load_i32(cells + 4 * t)
                    x = word(args, S.k) + t * word(args, S.ldk) + g * size * 4
                    finish_head(args, x, t, word(args, S.k_norm))
                    fill_k(args, x, g, cell)
                    at = word(args, S.v) + t * word(args, S.ldv) + g * word(args, S.head_size_v) * 4
                    fill_v(args, at, g, cell)

    return kernel


@callee
def turn_table(args, deltas, table):
    """table[pair] = cos[16] then sin[16] of 16 cells' deltas."""
    for i in range(word(args, T.n_rot) // 2):
        for cell in range(16):
            angle = load_i32(deltas + 4 * cell) * load_f64(word(args, T.inv_freq) + 8 * i)
            store_f32(table + (i * 32 + cell) * 4, types.float32(math.cos(angle)))
            store_f32(table + (i * 32 + 16 + cell) * 4, types.float32(math.sin(angle)))


@callee
def moves(deltas):
    """Whether any of 16 deltas is not zero."""
    for cell in range(16):
        if load_i32(deltas + 4 * cell):
            return True
    return False


@callee
def same_moves(a, b):
    """Whether two sets of 16 deltas are equal."""
    for cell in range(16):
        if load_i32(a + 4 * cell) != load_i32(b + 4 * cell):
            return False
    return True


@callee
def turn(cells, n_rot, neox, table):
    """Rotate 16 cells, f32 [dimension][16], by the table."""
    for i in range(n_rot // 2):
        first, second = pair_places(i, n_rot, neox)
        x, y = cells + first * 64, cells + second * 64
        a, b = load_f32x16(x), load_f32x16(y)
        c, s = load_f32x16(table + i * 128), load_f32x16(table + i * 128 + 64)
        store_f32x16(x, a * c - b * s)
        store_f32x16(y, a * s + b * c)


def shift_kernel(k):
    """Make the kernel that rotates stored K in place: positions moved, content did not."""
    k = kv_types.KV_TYPES[k]
    unpack, fill_key, is_rotated = kv_types.unpacker(k), k.make_fill_key(), k.is_rotated
    block, block_bytes = k.block, 16 * k.block_bytes

    @callee_out_of_line
    def turn_half(args, half, deltas, table):
        n, n_rot = word(args, T.head_size_k), word(args, T.n_rot)
        size = padded(n)
        cells = table + n_rot * 64
        row = cells + size * 64
        unpack(half, size, cells)
        chunk = hadamard.key_chunk(n) if is_rotated else 0
        if chunk:
            hadamard.rotate_cells(cells, n, chunk)
        turn(cells, n_rot, word(args, T.neox), table)
        if chunk:
            hadamard.rotate_cells(cells, n, chunk)
        for cell in range(16):
            if load_i32(deltas + 4 * cell):
                for d in range(n):
                    store_f32(row + 4 * d, load_f32(cells + d * 64 + 4 * cell))
                fill_key(row, n, half, cell)

    def shift(args, thread, n_threads):
        size, n_heads = padded(word(args, T.head_size_k)), word(args, T.n_head_kv)
        half_bytes = size // block * block_bytes
        table, built = word(args, T.scratch) + thread * word(args, T.scratch_stride), NONE
        for item in range(thread, word(args, T.n_pages), n_threads):
            page = load_i32(word(args, T.pages) + 4 * item)
            base = word(args, T.k_base) + page * word(args, T.k_page_bytes)
            for half in range(2):
                deltas = word(args, T.deltas) + item * 128 + half * 64
                if moves(deltas):
                    if built == 0 or not same_moves(deltas, built):
                        turn_table(args, deltas, table)
                        built = deltas
                    for h in range(n_heads):
                        turn_half(args, base + (h * 2 + half) * half_bytes, deltas, table)

    return shift
