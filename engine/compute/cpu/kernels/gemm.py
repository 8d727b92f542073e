"""Products of many rows: panels of weights unpacked into the first-level cache, integer tiles.

A thread takes a panel of 16 * R weight rows. For each 256 inputs it unpacks the panel once into
dot-product order and then streams every tile of T input rows through the micro-kernel.

Tile block (32 inputs): int8 [8][T][4], scale f32[T], scale * sum f32[T], sums of 16 i32[2][T].
Formats of 256 weights take inputs of one scale per 256: their tiles hold the sum alone, and the
scale is multiplied once per 256 inputs.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.compute.cpu.kernels.panels import (
    PANEL_AT,
    ROWS,
    SUMS_AT,
    R,
    T,
    panel_block,
    register_tile,
    unpacker,
    write_sums,
)
from engine.compute.cpu.kernels.words import count, indices, word
from engine.native.simd import (
    F32,
    I32,
    I64,
    atomic_add,
    callee_out_of_line,
    dot_tile_ir,
    f32x16,
    fma_ir,
    i8x64,
    i32x16,
    ir_type,
    load_ir,
    ptr,
    splat_ir,
    u8x64,
)

GEMM = indices("matmul/gemm")
TILE_BLOCK = 48 * T


def _splat_at(b, address, offset, scalar):
    return splat_ir(b, load_ir(b, address, scalar, offset), 16)


def _block_dots(b, form, panel, tile, g0, n):
    """Emit T x R float sums of n groups of 4 inputs from group g0, the offset taken off."""

    def start(t):
        if not form.offset:
            return ir.Constant(ir_type(i32x16), None)
        total = I32(0)
        for half in range(g0 // 4, (g0 + n) // 4):
            total = b.add(total, load_ir(b, tile, I32, 40 * T + 4 * (half * T + t)))
        return splat_ir(b, b.mul(total, I32(-form.offset)), 16)

    def weights(g):
        return [load_ir(b, panel, ir_type(u8x64), (g * R + r) * 64) for r in range(R)]

    def inputs(g, t):
        return b.bitcast(_splat_at(b, tile, (g * T + t) * 4, I32), ir_type(i8x64))

    sums = dot_tile_ir(b, (T, R), range(g0, g0 + n), start, weights, inputs, form.kind)
    return [[b.sitofp(sums[t, r], ir_type(f32x16)) for r in range(R)] for t in range(T)]


def _emit_step(b, form, c, panel, tile):
    """Emit one block: c[t][r] += scaled dots."""
    floats = ir_type(f32x16)

    def row(i, r):  # i-th row of scales or mins
        return load_ir(b, panel, floats, R * 512 + (i * R + r) * 64)

    def scale(i, t):  # 0: scale of x, 1: (scale *) sum
        return _splat_at(b, tile, 32 * T + (i * T + t) * 4, F32)

    n_scales = 32 // form.per_scale
    for i in range(n_scales):
        sums = _block_dots(b, form, panel, tile, i * 8 // n_scales, 8 // n_scales)
        for t in range(T):
            for r in range(R):
                d = row(i, r) if scaled_once(form) else b.fmul(row(i, r), scale(0, t))
                c[t][r] = fma_ir(b, sums[t][r], d, c[t][r])
    if form.has_min:
        for t in range(T):
            for r in range(R):
                c[t][r] = fma_ir(b, row(n_scales, r), scale(1, t), c[t][r])


def scaled_once(form):
    """Return whether inputs of this format have one scale per 256 values."""
    return form.values == 256


ACC, load_sums, store_sums = register_tile(R * T)


def micro(form):
    """Make micro(n_blocks, panel, tile, c, is_first): C tile f32[T][16 R] at c += the blocks."""

    @intrinsic
    def step(typing, acc, panel, tile):
        def emit(context, b, sig, a):
            acc, panel, tile = a
            c = [[b.extract_value(acc, t * R + r) for r in range(R)] for t in range(T)]
            _emit_step(b, form, c, panel, tile)
            for t in range(T):
                for r in range(R):
                    acc = b.insert_value(acc, c[t][r], t * R + r)
            return acc

        return ACC(ACC, types.int64, types.int64), emit

    block, once = panel_block(form), scaled_once(form)

    @callee_out_of_line
    def micro_kernel(n_blocks, panel, tile, c, is_first):
        acc = load_sums(c, is_first or once)
        scales = tile + 32 * T
        for _ in range(n_blocks):
            acc = step(acc, panel, tile)
            panel += block
            tile += TILE_BLOCK
        if once:
            add_scaled_sums(c, acc, scales, is_first)
        else:
            store_sums(c, acc)

    return micro_kernel


@intrinsic
def add_scaled_sums(typing, c, acc, scales, is_first):
    """C tile += acc times the f32[T] at scales, or = where is_first."""

    def emit(context, b, sig, a):
        c, acc, scales, is_first = a
        floats = ir_type(f32x16)
        for t in range(T):
            d = _splat_at(b, scales, 4 * t, F32)
            for r in range(R):
                i = t * R + r
                before = load_ir(b, c, floats, 64 * i)
                before = b.select(is_first, ir.Constant(floats, None), before)
                place = ptr(b, b.add(c, I64(64 * i)), floats)
                b.store(fma_ir(b, b.extract_value(acc, i), d, before), place, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, ACC, types.int64, types.boolean), emit


def kernels(form):
    """Return gemm of a quantized weight type."""
    unpack_panel, micro_kernel = unpacker(form), micro(form)

    def gemm(args, thread, n_threads):
        n_tokens, n_in, n_out = (
            count(args, GEMM.n_rows),
            word(args, GEMM.n_in),
            word(args, GEMM.n_out),
        )
        s = word(args, GEMM.scratch) + thread * word(args, GEMM.scratch_stride)
        n_blocks = n_in // 32
        while True:
            r = atomic_add(word(args, GEMM.counter), 1) * ROWS
            if r >= n_out:
                break
            for chunk in range((n_blocks + 7) // 8):
                n = min(8, n_blocks - chunk * 8)
                w, row_bytes = word(args, GEMM.w), word(args, GEMM.row_bytes)
                unpack_panel(w, row_bytes, r, n_out, chunk, n, s)
                tile = word(args, GEMM.tiles) + chunk * 8 * TILE_BLOCK
                c = s + SUMS_AT
                for _ in range(0, n_tokens, T):
                    micro_kernel(n, s + PANEL_AT, tile, c, chunk == 0)
                    tile += n_blocks * TILE_BLOCK
                    c += T * ROWS * 4
            bias, add = word(args, GEMM.bias), word(args, GEMM.add)
            y, ldy = word(args, GEMM.y), word(args, GEMM.ldy)
            write_sums(s + SUMS_AT, y, ldy, n_tokens, r, n_out, bias, add)

    return {"gemm": gemm}
