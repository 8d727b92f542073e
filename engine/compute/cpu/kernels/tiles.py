"""Input rows arranged for gemm: int8 tiles with scales and sums, or plain f32 tiles.

Tile layouts: see gemm.py (quantized) and gemm_float.py.
"""

import numpy as np

from engine.compute.cpu.kernels.gemm import TILE_BLOCK
from engine.compute.cpu.kernels.gemm_float import TOKENS
from engine.compute.cpu.kernels.inputs import input_row
from engine.compute.cpu.kernels.panels import T
from engine.compute.cpu.kernels.tile_blocks import largest32, largest256, write_block
from engine.compute.cpu.kernels.words import count, indices, word
from engine.native.simd import (
    atomic_add,
    callee_out_of_line,
    load_f32,
    stack,
    store_f32,
    store_i64,
)

QUANTIZE, ARRANGE = indices("matmul/quantize"), indices("matmul/arrange")
row_addresses = stack(8 * T)


@callee_out_of_line
def quantize_rows(rows, n_blocks, block, tile):
    """T rows into a tile; one scale per `block` (32 or 256) inputs."""
    sizes = largest32(rows, 0)
    for i in range(n_blocks):
        if block == 32:
            sizes = largest32(rows, i * 128)
        elif i % 8 == 0:
            sizes = largest256(rows, i * 128)
        write_block(rows, i * 128, sizes, block == 32, tile)
        tile += TILE_BLOCK


def quantize(args, thread, n_threads):
    n_rows, n_in = count(args, QUANTIZE.n_rows), word(args, QUANTIZE.n_in)
    spare = word(args, QUANTIZE.scratch) + thread * word(args, QUANTIZE.scratch_stride)
    rows, n_blocks = row_addresses(), n_in // 32
    while True:
        t0 = atomic_add(word(args, QUANTIZE.counter), 1) * T
        if t0 >= n_rows:
            break
        for i in range(T):  # a tile beyond the last row repeats it
            t = min(t0 + i, n_rows - 1)
            store_i64(rows + 8 * i, input_row(args, QUANTIZE, t, 0, n_in, spare + i * n_in * 4))
        tile = word(args, QUANTIZE.tiles) + t0 * n_blocks * (TILE_BLOCK // T)
        quantize_rows(rows, n_blocks, word(args, QUANTIZE.block), tile)


@callee_out_of_line
def arrange_row(x, n, tile):
    """One row into its column of a float tile."""
    for i in range(n):
        store_f32(tile + i * 4 * TOKENS, load_f32(x + 4 * i))


def arrange(args, thread, n_threads):
    n_rows, n_in = count(args, ARRANGE.n_rows), word(args, ARRANGE.n_in)
    spare = word(args, ARRANGE.scratch) + thread * word(args, ARRANGE.scratch_stride)
    while True:
        t0 = atomic_add(word(args, ARRANGE.counter), 1) * TOKENS
        if t0 >= n_rows:
            break
        for i in range(TOKENS):
            t, tile = t0 + i, word(args, ARRANGE.tiles) + (t0 * n_in + i) * 4
            if t >= n_rows:
                for j in range(n_in):
                    store_f32(tile + j * 4 * TOKENS, np.float32(0))
                continue
            x = input_row(args, ARRANGE, t, 0, n_in, spare)
            arrange_row(x, n_in, tile)


def kernels():
    """Return the kernels of matmul.input."""
    return {"quantize": quantize, "arrange": arrange}
