"""Products of many rows with F32, F16 or BF16 weights: true f32 multiply-adds over tiles.

A thread takes a panel of 16 * R weight rows. For each 64 inputs it transposes the panel once into
f32 [inputs][16 R] and then streams every tile f32 [n_in][TOKENS] of input rows through FMA.
"""

from numba import types
from numba.extending import intrinsic

from engine.compute.cpu.kernels.gemm import GEMM
from engine.compute.cpu.kernels.panels import ROWS, R, register_tile, transposer, write_sums
from engine.compute.cpu.kernels.rows_float import LOADS
from engine.compute.cpu.kernels.words import count, word
from engine.native.simd import (
    F32,
    atomic_add,
    callee_out_of_line,
    f32x16,
    fma_ir,
    ir_type,
    load_ir,
    prefetch,
    splat_ir,
    store_f32,
    store_f32x16,
)

CHUNK = 64  # inputs
TOKENS = 4  # rows of a tile: enough independent sums to keep the multiply-adds busy
ACC, load_sums, store_sums = register_tile(R * TOKENS)
PANEL_AT = 16 * CHUNK * 4
SUMS_AT = PANEL_AT + ROWS * CHUNK * 4
spread = transposer([j * ROWS * 4 for j in range(16)])


@intrinsic
def step(typing, acc, panel, tile):
    """One input: acc[t][r] += panel[r] * tile[t]."""

    def emit(context, b, sig, a):
        acc, panel, tile = a
        w = [load_ir(b, panel, ir_type(f32x16), 64 * r) for r in range(R)]
        for t in range(TOKENS):
            x = splat_ir(b, load_ir(b, tile, F32, 4 * t), 16)
            for r in range(R):
                c = fma_ir(b, w[r], x, b.extract_value(acc, t * R + r))
                acc = b.insert_value(acc, c, t * R + r)
        return acc

    return ACC(ACC, types.int64, types.int64), emit


@callee_out_of_line
def micro_kernel(n, panel, tile, c, is_first):
    acc = load_sums(c, is_first)
    for _ in range(n):
        acc = step(acc, panel, tile)
        panel += ROWS * 4
        tile += TOKENS * 4
    store_sums(c, acc)


def kernels(name):
    """Return gemm of a float type."""
    n_bytes, load16, load1 = LOADS[name]

    @callee_out_of_line
    def unpack_panel(w, row_bytes, r, r1, k, n, s):
        """Inputs [k, k + n) of rows [r, r + 16 R), clamped below r1."""
        for h in range(0, ROWS, 16):
            for i in range(16):
                p = w + min(r + h + i, r1 - 1) * row_bytes + k * n_bytes
                prefetch(p + CHUNK * n_bytes)
                whole = n // 16 * 16
                for j in range(0, whole, 16):
                    store_f32x16(s + (i * CHUNK + j) * 4, load16(p + j * n_bytes))
                for j in range(whole, n):
                    store_f32(s + (i * CHUNK + j) * 4, load1(p + j * n_bytes))
            for j in range(0, n, 16):
                spread(s + j * 4, CHUNK * 4, s + PANEL_AT + (j * ROWS + h) * 4)

    def gemm(args, thread, n_threads):
        n_tokens, n_in, n_out = (
            count(args, GEMM.n_rows),
            word(args, GEMM.n_in),
            word(args, GEMM.n_out),
        )
        s = word(args, GEMM.scratch) + thread * word(args, GEMM.scratch_stride)
        while True:
            r = atomic_add(word(args, GEMM.counter), 1) * ROWS
            if r >= n_out:
                break
            for k in range(0, n_in, CHUNK):
                n = min(CHUNK, n_in - k)
                unpack_panel(word(args, GEMM.w), word(args, GEMM.row_bytes), r, n_out, k, n, s)
                tile, c = word(args, GEMM.tiles) + k * TOKENS * 4, s + SUMS_AT
                for _ in range(0, n_tokens, TOKENS):
                    micro_kernel(n, s + PANEL_AT, tile, c, k == 0)
                    tile += n_in * TOKENS * 4
                    c += TOKENS * ROWS * 4
            bias, add = word(args, GEMM.bias), word(args, GEMM.add)
            y, ldy = word(args, GEMM.y), word(args, GEMM.ldy)
            write_sums(s + SUMS_AT, y, ldy, n_tokens, r, n_out, bias, add)

    return {"gemm": gemm}
