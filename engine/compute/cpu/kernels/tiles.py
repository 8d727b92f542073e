"""Input rows arranged for gemm: int8 tiles with scales and sums, or plain f32 tiles.

Tile layouts: see gemm.py (quantized) and gemm_float.py.
"""

import numpy as np

from engine.compute.cpu.kernels.gemm import TILE_BLOCK, T
from engine.compute.cpu.kernels.inputs import (
    input_row,
    int32x16,
    largest32,
    largest256,
    steps,
)
from engine.compute.cpu.kernels.words import count, indices, word
from engine.native.simd import (
    atomic_add,
    callee,
    callee_out_of_line,
    i32_to_i8,
    load_f32,
    load_i32,
    stack,
    store_f32,
    store_i8x16,
    store_i32,
    sum_i32,
)

QUANTIZE, ARRANGE = indices("matmul/quantize"), indices("matmul/arrange")
packed_room = stack(64)


@callee
def clear_column(tile):
    """Make one 32-block of a missing row zero."""
    for i in range(0, TILE_BLOCK // T, 4):
        store_i32(tile + i * T, np.int32(0))


@callee
def block_column(x, scale, sum_scale, inverse, tile):
    """32 floats at x -> their column of a tile block."""
    a, b = int32x16(x, inverse), int32x16(x + 64, inverse)
    spare = packed_room()
    store_i8x16(spare, i32_to_i8(a))
    store_i8x16(spare + 16, i32_to_i8(b))
    for j in range(8):
        store_i32(tile + j * 4 * T, load_i32(spare + j * 4))
    s0, s1 = sum_i32(a), sum_i32(b)
    store_f32(tile + 32 * T, scale)
    store_f32(tile + 36 * T, sum_scale * np.float32(s0 + s1))
    store_i32(tile + 40 * T, s0)
    store_i32(tile + 44 * T, s1)


@callee_out_of_line
def quantize_row(x, n_blocks, block, tile):
    """One row into its column of a tile; one scale per `block` (32 or 256) inputs."""
    scale = inverse = np.float32(0)
    for i in range(n_blocks):
        if block == 32:
            scale, inverse = steps(largest32(x))
        elif i % 8 == 0:
            scale, inverse = steps(largest256(x))
        block_column(x, scale, scale if block == 32 else np.float32(1), inverse, tile)
        x += 128
        tile += TILE_BLOCK


def quantize(args, thread, n_threads):
    n_rows, n_in = count(args, QUANTIZE.n_rows), word(args, QUANTIZE.n_in)
    spare = word(args, QUANTIZE.scratch) + thread * word(args, QUANTIZE.scratch_stride)
    n_blocks = n_in // 32
    while True:
        t0 = atomic_add(word(args, QUANTIZE.counter), 1) * T
        if t0 >= n_rows:
            break
        for i in range(T):
            t, tile = t0 + i, word(args, QUANTIZE.tiles) + t0 * n_blocks * (TILE_BLOCK // T) + 4 * i
            if t >= n_rows:
                for j in range(n_blocks):
                    clear_column(tile + j * TILE_BLOCK)
                continue
            x = input_row(args, QUANTIZE, t, 0, n_in, spare)
            quantize_row(x, n_blocks, word(args, QUANTIZE.block), tile)


@callee_out_of_line
def arrange_row(x, n, tile):
    """One row into its column of a float tile."""
    for i in range(n):
        store_f32(tile + i * 4 * T, load_f32(x + 4 * i))


def arrange(args, thread, n_threads):
    n_rows, n_in = count(args, ARRANGE.n_rows), word(args, ARRANGE.n_in)
    spare = word(args, ARRANGE.scratch) + thread * word(args, ARRANGE.scratch_stride)
    while True:
        t0 = atomic_add(word(args, ARRANGE.counter), 1) * T
        if t0 >= n_rows:
            break
        for i in range(T):
            t, tile = t0 + i, word(args, ARRANGE.tiles) + (t0 * n_in + i) * 4
            if t >= n_rows:
                for j in range(n_in):
                    store_f32(tile + j * 4 * T, np.float32(0))
                continue
            x = input_row(args, ARRANGE, t, 0, n_in, spare)
            arrange_row(x, n_in, tile)


def kernels():
    """Return the kernels of matmul.input."""
    return {"quantize": quantize, "arrange": arrange}
