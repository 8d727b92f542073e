"""Attention of a few query rows of one KV head over pages of cells, by online softmax.

Each K and V load serves every row of the tile. Scratch of one thread, f32, for a tile of n rows,
the head sizes k and v padded to 16:
    q[k][n]  s[n][KEY_BLOCK]  o[n][v]  m[n]  l[n]  low[n]  span[n]
then int64 page[4 + 1] and mask[4] of the pages being worked on, and the page after them.
Decision: only the innermost steps are compiled per tile shape; everything around them takes n at
run time, which costs nothing per block of cells and a third of the compile time.
Decision: each page is prefetched while the one before it is worked on. Where pages are small and
apart the hardware starts anew with each, and a layer with 3 heads of 64 took 1.3 times as long as
over one stretch of memory; with the prefetch it takes 1.0 times.
"""

import math

import numpy as np
from numba import types

from engine.compute.cpu.kernels import kv_types, tile
from engine.compute.cpu.kernels.hadamard import rotate_row, value_chunk
from engine.compute.cpu.kernels.pages import seen_cells
from engine.compute.cpu.kernels.rows import load_upto, scatter_f32x16, store_upto
from engine.compute.cpu.kernels.words import NONE, indices, inner_word, padded, word, word_f32
from engine.compute.cpu.signatures import (
    FIRST_ROW,
    KEY_BLOCK,
    PAGE_POSITIONS,
    PAGES,
    POSITIONS,
)
from engine.native.simd import (
    callee,
    callee_out_of_line,
    load_f32,
    load_f32x16,
    load_i32,
    max_f32,
    prefetch,
    select_lt_f32,
    splat_f32,
    store_f32,
    store_f32x16,
    store_i32,
    store_i64,
    sum_f32,
    vexp,
    vmax,
    zero_f32x16,
)

A = indices("attention.f16.f16/attend_split")

# Far above a hidden score and far below a real one: the exponential of a hidden score is exactly
# zero even when a row sees nothing.
LOWEST = np.float32(-1.0e29)
BLOCK_PAGES = KEY_BLOCK // 32
MASKS = BLOCK_PAGES + 1
EVERY_CELL = 0xFFFFFFFF


@callee
def query_place(args, run, h, row):
    """Batch row and query head of row `row` of KV head h in a run: token-major, then the group."""
    group = word(args, A.n_head) // word(args, A.n_head_kv)
    return word(run, FIRST_ROW) + row // group, h * group + row % group


@callee
def row_range(args, t):
    """Lowest position that batch row t sees, and how far its own lies above."""
    position = load_i32(inner_word(args, A.batch, POSITIONS) + 4 * t)
    window = word(args, A.window)
    low = max(0, position - window + 1) if window else 0
    return low, position - low


@callee
def collect_pages(args, run, i, end, low, span, block):
    """Store up to BLOCK_PAGES pages with cells in [low, low + span]; how many, and the next i."""
    pages, positions = word(run, PAGES), inner_word(args, A.pool, PAGE_POSITIONS)
    n = page = 0
    while i < end and n < BLOCK_PAGES:
        page = load_i32(pages + 4 * i)
        mask = seen_cells(positions + page * 128, types.int32(low), types.int32(span))
        if mask:
            store_i64(block + 8 * n, page)
            store_i64(block + 8 * (MASKS + n), mask)
            n += 1
        i += 1
    store_i64(block + 8 * n, load_i32(pages + 4 * i) if i < end else page)
    return n, i


@callee
def softcap_scores(s, n, cap):
    """s = cap * tanh(s / cap) of n scores, hidden ones untouched."""
    one, c = splat_f32(np.float32(1)), splat_f32(cap)
    two, floor = splat_f32(np.float32(2) / cap), splat_f32(LOWEST)
    for i in range(0, n * 4, 64):
        v = load_f32x16(s + i)
        capped = c * (one - (one + one) / (vexp(v * two) + one))
        store_f32x16(s + i, select_lt_f32(v, floor, v, capped))


@callee
def softmax_scores(s, n, m_old):
    """Turn n scores into exp(s - m) with the running maximum m; m and the sum."""
    largest = load_f32x16(s)
    for i in range(64, n * 4, 64):
        largest = vmax(largest, load_f32x16(s + i))
    m = max(m_old, max_f32(largest))
    at, total = splat_f32(m), zero_f32x16()
    for i in range(0, n * 4, 64):
        e = tile.weight_exp(load_f32x16(s + i) - at)
        total = total + e
        store_f32x16(s + i, e)
    return m, sum_f32(total)


@callee_out_of_line
def prepare(args, n, run, h, row0, n_rows, sinks, q, o, m):
    """Transpose and scale the queries, set limits and an empty output; the range of the tile."""
    size, size_v = word(args, A.head_size_k), padded(word(args, A.head_size_v))
    scale = splat_f32(word_f32(args, A.scale))
    low, high = 1 << 31, -1
    for r in range(n):
        t, head = query_place(args, run, h, row0 + min(r, n_rows - 1))
        x = word(args, A.q) + t * word(args, A.ldq) + head * size * 4
        for d in range(0, size, 16):
            scatter_f32x16(q + (d * n + r) * 4, load_upto(x + 4 * d, size - d) * scale, 4 * n)
        first, span = row_range(args, t)
        low, high = min(low, first), max(high, first + span)
        store_i32(m + 4 * (2 * n + r), types.int32(first))
        store_i32(m + 4 * (3 * n + r), types.int32(span))
        start = LOWEST
        if sinks:
            start = max(start, load_f32(sinks + 4 * head))
        store_f32(m + 4 * r, start)
        store_f32(m + 4 * (n + r), np.float32(1 if sinks else 0))
    for i in range(0, n * size_v * 4, 64):
        store_f32x16(o + i, zero_f32x16())
    return low, high - low


@callee_out_of_line
def weigh(args, n, n_scores, s, o, m):
    """Turn scores into softmax weights, and scale what was summed so far to match."""
    size, cap = padded(word(args, A.head_size_v)), word_f32(args, A.softcap)
    for r in range(n):
        row = s + r * KEY_BLOCK * 4
        if cap > 0:
            softcap_scores(row, n_scores, cap)
        m_old = load_f32(m + 4 * r)
        m_now, total = softmax_scores(row, n_scores, m_old)
        c = np.float32(1)
        if m_now != m_old:
            c = np.float32(math.exp(max(m_old - m_now, np.float32(-87))))
            factor, first = splat_f32(c), o + r * size * 4
            for i in range(first, first + size * 4, 64):
                store_f32x16(i, load_f32x16(i) * factor)
        store_f32(m + 4 * r, m_now)
        store_f32(m + 4 * (n + r), load_f32(m + 4 * (n + r)) * c + total)


def _writer(kv):
    """Make write(…): rows of the tile to `out`, or to pieces of split rows."""
    is_rotated = kv.is_rotated

    @callee_out_of_line
    def write(args, n, run, h, row0, n_rows, part, o, m):
        """Write normalised rows to `out`, or unnormalised ones with maximum and sum to `part`."""
        size = word(args, A.head_size_v)
        stride = padded(size)
        for r in range(n_rows):
            t, head = query_place(args, run, h, row0 + r)
            row, total = o + r * stride * 4, load_f32(m + 4 * (n + r))
            if part:
                target = part + r * (stride + 16) * 4
                for d in range(0, stride, 16):
                    store_f32x16(target + 4 * d, load_f32x16(row + 4 * d))
                store_f32(target + 4 * stride, load_f32(m + 4 * r))
                store_f32(target + 4 * stride + 4, total)
            else:
                target = word(args, A.out) + t * word(args, A.ldo) + head * size * 4
                inverse = splat_f32(np.float32(1) / total if total > 0 else np.float32(0))
                for d in range(0, size, 16):
                    store_upto(target + 4 * d, load_f32x16(row + 4 * d) * inverse, size - d)
                if is_rotated and value_chunk(size):
                    rotate_row(target, size, value_chunk(size))

    return write


def _dots(n, kv):
    """Make dots(…): the scores of n rows over the cells of a step, hidden ones masked."""
    vectors, block_bytes = tile.TILES.cell_vectors, 16 * kv.block_bytes
    zero, step, finish = tile.score_steps(n, vectors, kv)

    @callee
    def prefetch_block(k, half_bytes):
        for line in range(0, block_bytes, 64):
            for half in range(vectors):
                prefetch(k + half * half_bytes + line)

    @callee_out_of_line
    def dots_of_fours(k, ahead, half_bytes, q, s, positions, low):
        acc = zero()
        for i in range(half_bytes // block_bytes):
            prefetch_block(k + ahead + i * block_bytes, half_bytes)
            acc = step(acc, k + i * block_bytes, NONE, half_bytes, q + i * 16 * n)
        finish(acc, s, positions, low)

    @callee_out_of_line
    def dots_of_blocks(k, ahead, half_bytes, q, s, positions, low):
        acc = zero()
        for block in range(k, k + half_bytes, block_bytes):
            prefetch_block(block + ahead, half_bytes)
            for i in range(8):
                acc = step(acc, block, i, half_bytes, q)
                q += 16 * n
        finish(acc, s, positions, low)

    return dots_of_fours if kv.block == 4 else dots_of_blocks


def _scorer(k):
    """Make score(…): the tile's scores over the collected pages."""
    small, middle, _ = tile.TILES.rows
    dots_small, dots_middle, dots_large = (_dots(n, k) for n in tile.TILES.rows)
    step_cells, block, block_bytes = 16 * tile.TILES.cell_vectors, k.block, 16 * k.block_bytes

    @callee
    def score(args, n, h, n_pages, block_of_pages, q, s, low):
        positions, page_bytes = inner_word(args, A.pool, PAGE_POSITIONS), word(args, A.k_page_bytes)
        half_bytes = padded(word(args, A.head_size_k)) // block * block_bytes
        for j in range(n_pages):
            page = word(block_of_pages, j)
            k = word(args, A.k_base) + page * page_bytes + h * 2 * half_bytes
            ahead = (word(block_of_pages, j + 1) - page) * page_bytes
            for cell in range(0, 32, step_cells):
                at, out = positions + page * 128 + cell * 4, s + (32 * j + cell) * 4
                if n == small:
                    dots_small(k, ahead, half_bytes, q, out, at, low)
                elif n == middle:
                    dots_middle(k, ahead, half_bytes, q, out, at, low)
                else:
                    dots_large(k, ahead, half_bytes, q, out, at, low)
                k += half_bytes

    return score


def _adder(n_rows, n_columns, kv):
    """Make add(…): n_rows x 16 n_columns outputs += weights times values of the collected pages."""
    load, step, store = tile.value_steps(n_rows, n_columns, kv)
    columns, columns_bytes = kv.columns, kv.columns_bytes
    row_bytes = 16 * n_columns // columns * columns_bytes

    @callee_out_of_line
    def add(n_pages, block, page_bytes, v, s, o, size):
        acc, stride = load(o, size * 4), size // columns * columns_bytes
        for j in range(n_pages):
            at, p = v + word(block, j) * page_bytes, s + 128 * j
            ahead = (word(block, j + 1) - word(block, j)) * page_bytes
            mask = word(block, MASKS + j)
            if mask == EVERY_CELL:
                for i in range(32):
                    for line in range(0, row_bytes, 64):
                        prefetch(at + ahead + i * stride + line)
                    acc = step(acc, at + i * stride, p + i * 4)
            else:
                for i in range(32):
                    if mask >> i & 1:  # an empty cell may hold NaN, and NaN * 0 is NaN
                        acc = step(acc, at + i * stride, p + i * 4)
        store(o, size * 4, acc)

    return add


def _summer(kv):
    """Make add_values(…): the tile's outputs += weights times values of the collected pages."""
    (few, few_columns), (many, many_columns) = tile.TILES.values(kv)
    columns, columns_bytes = kv.columns, kv.columns_bytes
    few_wide, many_wide = _adder(few, few_columns, kv), _adder(many, many_columns, kv)
    few_narrow = _adder(few, columns // 16, kv)
    largest = tile.TILES.rows[2]

    @callee
    def add_values(args, n, h, n_pages, block, s, o):
        size, page_bytes = padded(word(args, A.head_size_v)), word(args, A.v_page_bytes)
        v = word(args, A.v_base) + h * 32 * (size // columns * columns_bytes)
        wide = 16 * (many_columns if n == largest else few_columns)
        for d in range(0, size & -wide, wide):
            at, to = v + d // columns * columns_bytes, o + d * 4
            if n == largest:
                for r in range(0, n, many):
                    p = s + r * KEY_BLOCK * 4
                    many_wide(n_pages, block, page_bytes, at, p, to + r * size * 4, size)
            else:
                for r in range(0, n, few):
                    p = s + r * KEY_BLOCK * 4
                    few_wide(n_pages, block, page_bytes, at, p, to + r * size * 4, size)
        for d in range(size & -wide, size, columns):
            at, to = v + d // columns * columns_bytes, o + d * 4
            for r in range(0, n, few):
                p = s + r * KEY_BLOCK * 4
                few_narrow(n_pages, block, page_bytes, at, p, to + r * size * 4, size)

    return add_values


def attend_rows(k, v):
    """Make attend(args, run, h, row0, n_rows, first_page, end_page, sinks, part, scratch).

    Rows [row0, row0 + n_rows) of KV head h, n_rows <= TILE_ROWS, over pages [first_page, end_page)
    of a run. `sinks` is the address of f32[n_head] or 0. `part` 0 writes the answer to `out`; else
    row r goes to part + r * (v + 16) * 4 unnormalised, followed by its maximum and its sum.
    """
    k, v = kv_types.KV_TYPES[k], kv_types.KV_TYPES[v]
    small, middle, large = tile.TILES.rows
    score, add_values, write = _scorer(k), _summer(v), _writer(v)

    @callee
    def attend_tile(args, n, run, h, row0, n_rows, first_page, end_page, sinks, part, scratch):
        q, size_v = scratch, padded(word(args, A.head_size_v))
        s = q + padded(word(args, A.head_size_k)) * n * 4
        o = s + n * KEY_BLOCK * 4
        m = o + n * size_v * 4
        low, block = m + 8 * n, m + 16 * n
        lowest, span = prepare(args, n, run, h, row0, n_rows, sinks, q, o, m)
        i = first_page
        while True:
            n_pages, i = collect_pages(args, run, i, end_page, lowest, span, block)
            if n_pages == 0:
                break
            score(args, n, h, n_pages, block, q, s, low)
            weigh(args, n, n_pages * 32, s, o, m)
            add_values(args, n, h, n_pages, block, s, o)
        write(args, n, run, h, row0, n_rows, part, o, m)

    @callee_out_of_line
    def attend(args, run, h, row0, n_rows, first_page, end_page, sinks, part, scratch):
        row_bytes = (padded(word(args, A.head_size_v)) + 16) * 4
        n = small if n_rows <= small else (middle if n_rows <= middle else large)
        for r in range(0, n_rows, n):
            at, some = part + r * row_bytes if part else NONE, min(n, n_rows - r)
            attend_tile(args, n, run, h, row0 + r, some, first_page, end_page, sinks, at, scratch)

    return attend
