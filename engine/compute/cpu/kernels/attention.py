"""Attention kernels of one pair of cache types: store, whole tiles, shared pages, merge."""

import math

import numpy as np
from numba import types

from engine.compute.cpu.kernels import store
from engine.compute.cpu.kernels.attend import A, attend_rows, query_place, row_range
from engine.compute.cpu.kernels.hadamard import rotate_row, value_chunk
from engine.compute.cpu.kernels.kv_types import KV_TYPES
from engine.compute.cpu.kernels.pages import seen_cells
from engine.compute.cpu.kernels.rows import store_upto
from engine.compute.cpu.kernels.words import NONE, inner_word, padded, word
from engine.compute.cpu.signatures import (
    FIRST_ROW,
    N_PAGES,
    N_RUNS,
    PAGE_POSITIONS,
    PAGES,
    RANGES_PER_THREAD,
    RUN_N_ROWS,
    RUNS,
    TILE_ROWS,
)
from engine.native.simd import (
    atomic_add,
    callee,
    fma,
    load_f32,
    load_f32x16,
    load_i32,
    splat_f32,
    zero_f32x16,
)

RUN_BYTES = 32


@callee
def run_address(args, i):
    """Address of run i of the pool."""
    return inner_word(args, A.pool, RUNS) + i * RUN_BYTES


@callee
def n_tiles(args, run):
    """Tiles of one KV head of a run, and its rows."""
    group = word(args, A.n_head) // word(args, A.n_head_kv)
    rows = word(run, RUN_N_ROWS) * group
    return (rows + TILE_ROWS - 1) // TILE_ROWS, rows


@callee
def first_page(args, run):
    """Number of leading pages of a run that lie outside every row's window."""
    if word(args, A.window) == 0:
        return 0
    t = word(run, FIRST_ROW)
    low, _ = row_range(args, t)
    for r in range(1, word(run, RUN_N_ROWS)):
        other, _ = row_range(args, t + r)
        low = min(low, other)
    pages = word(run, PAGES)
    positions = inner_word(args, A.pool, PAGE_POSITIONS)
    first, end = 0, word(run, N_PAGES)
    low, span = types.int32(low), types.int32(0x7FFFFFFF - low)
    while first < end and not seen_cells(positions + load_i32(pages + 4 * first) * 128, low, span):
        first += 1
    return first


def attend_kernel(rows_attend):
    """Make the kernel for prompts: a thread takes whole tiles, the longest of a run first."""

    def attend(args, thread, n_threads):
        n_heads = word(args, A.n_head_kv)
        scratch = word(args, A.scratch) + thread * word(args, A.scratch_stride)
        i, before, sinks = NONE, 0, word(args, A.sinks)
        item = atomic_add(word(args, A.counter), 1)
        while i < inner_word(args, A.pool, N_RUNS):
            run = run_address(args, i)
            tiles, rows = n_tiles(args, run)
            if item - before >= tiles * n_heads:
                i, before = i + 1, before + tiles * n_heads
                continue
            h, row0 = (
                (item - before) % n_heads,
                (tiles - 1 - (item - before) // n_heads) * TILE_ROWS,
            )
            n_rows, end = min(TILE_ROWS, rows - row0), word(run, N_PAGES)
            rows_attend(args, run, h, row0, n_rows, NONE, end, sinks, NONE, scratch)
            item = atomic_add(word(args, A.counter), 1)

    return attend


# ---------------------------------------------------------------- few rows: pages shared out
# A unit is one page of one tile; units are numbered run by run, head by head, tile by tile, page
# by page, and cut into equal ranges. A piece is the part of a tile within a range; pieces get
# slots of `partials` by tile number + range number, which no two pieces share.
@callee
def n_units(args):
    """Units of the whole batch."""
    total = 0
    for i in range(inner_word(args, A.pool, N_RUNS)):
        run = run_address(args, i)
        tiles, _ = n_tiles(args, run)
        n_pages = word(run, N_PAGES) - first_page(args, run)
        total += tiles * word(args, A.n_head_kv) * n_pages
    return total


@callee
def n_ranges(units, n_threads):
    """Ranges to cut the units into: one per thread while they are short."""
    n = n_threads if units < 16 * n_threads else n_threads * RANGES_PER_THREAD
    return max(1, min(n, units))


@callee
def slot(args, tile, part):
    """Address of the slot of tile number + range number."""
    row_bytes = (padded(word(args, A.head_size_v)) + 16) * 4
    return word(args, A.partials) + (tile + part) * TILE_ROWS * row_bytes


def split_kernel(rows_attend):
    """Make the kernel for few rows: a thread takes ranges of units."""

    def attend_split(args, thread, n_threads):
        scratch = word(args, A.scratch) + thread * word(args, A.scratch_stride)
        units = n_units(args)
        ranges = n_ranges(units, n_threads)
        while True:
            part = atomic_add(word(args, A.counter), 1)
            if part >= ranges:
                break
            unit, end = units * part // ranges, units * (part + 1) // ranges
            i, tile0, before = NONE, 0, 0
            while unit < end:
                run = run_address(args, i)
                tiles, rows = n_tiles(args, run)
                skipped = first_page(args, run)
                n_pages, n_run_tiles = (
                    word(run, N_PAGES) - skipped,
                    tiles * word(args, A.n_head_kv),
                )
                while unit < min(end, before + n_run_tiles * n_pages):
                    tile, page = (unit - before) // n_pages, (unit - before) % n_pages
                    some = min(n_pages - page, end - unit)
                    row0 = tile % tiles * TILE_ROWS
                    sinks = word(args, A.sinks) if page == 0 else NONE
                    rows_attend(
                        args,
                        run,
                        tile // tiles,
                        row0,
                        min(TILE_ROWS, rows - row0),
                        skipped + page,
                        skipped + page + some,
                        sinks,
                        slot(args, tile0 + tile, part),
                        scratch,
                    )
                    unit += some
                i, tile0, before = i + 1, tile0 + n_run_tiles, before + n_run_tiles * n_pages

    return attend_split


@callee
def merge_row(first, stride, n, size, out):
    """out = the weighted mean of n partial rows, `stride` bytes apart; 0 if they saw nothing."""
    at = 4 * padded(size)
    m = np.float32(-3e38)
    for i in range(n):
        m = max(m, load_f32(first + i * stride + at))
    total = np.float32(0)
    for i in range(n):
        row = first + i * stride
        weight = np.float32(math.exp(max(load_f32(row + at) - m, np.float32(-87))))
        total += load_f32(row + at + 4) * weight
    inverse = np.float32(1) / total if total > 0 else np.float32(0)
    for d in range(0, size, 16):
        acc = zero_f32x16()
        for i in range(n):
            row = first + i * stride
            weight = np.float32(math.exp(max(load_f32(row + at) - m, np.float32(-87))))
            acc = fma(load_f32x16(row + 4 * d), splat_f32(weight * inverse), acc)
        store_upto(out + 4 * d, acc, size - d)


def merge_kernel(v):
    """Make the kernel that joins the pieces of split rows."""
    is_rotated = KV_TYPES[v].is_rotated

    def merge(args, thread, n_threads):
        """Join the pieces of every row."""
        size = word(args, A.head_size_v)
        row_bytes, units = (padded(size) + 16) * 4, n_units(args)
        ranges = n_ranges(units, n_threads)
        item, tile0, before = 0, 0, 0
        for i in range(inner_word(args, A.pool, N_RUNS)):
            run = run_address(args, i)
            tiles, rows = n_tiles(args, run)
            n_pages = word(run, N_PAGES) - first_page(args, run)
            n_run_tiles = tiles * word(args, A.n_head_kv)
            for tile in range(n_run_tiles):
                unit, row0 = before + tile * n_pages, tile % tiles * TILE_ROWS
                first = ((unit + 1) * ranges + units - 1) // max(1, units) - 1
                last = ((unit + n_pages) * ranges + units - 1) // max(1, units) - 1
                n = last - first + 1 if n_pages else 0
                for r in range(min(TILE_ROWS, rows - row0)):
                    if item % n_threads == thread:
                        t, head = query_place(args, run, tile // tiles, row0 + r)
                        out = word(args, A.out) + t * word(args, A.ldo) + head * size * 4
                        part = slot(args, tile0 + tile, first) + r * row_bytes
                        merge_row(part, TILE_ROWS * row_bytes, n, size, out)
                        if is_rotated and value_chunk(size):
                            rotate_row(out, size, value_chunk(size))
                    item += 1
            tile0, before = (
                tile0 + tiles * word(args, A.n_head_kv),
                before + tiles * word(args, A.n_head_kv) * n_pages,
            )

    return merge


def kernels(k, v):
    """Return the kernels of the unit for cache types k and v."""
    rows_attend = attend_rows(k, v)
    return {
        "attend": attend_kernel(rows_attend),
        "attend_split": split_kernel(rows_attend),
        "merge": merge_kernel(v),
        "shift": store.shift_kernel(k),
        "store": store.store_kernel(k, v),
    }
