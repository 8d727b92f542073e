"""Products of many rows: panels of weights unpacked into the first-level cache, integer tiles.

A thread takes a panel of 16 * R weight rows. For each 256 inputs it unpacks the panel once into
dot-product order and then streams every tile of T input rows through the micro-kernel.

Panel block (32 inputs): bytes [8 groups of 4 inputs][16 R rows][4], then scales f32[16 R] (twice
where a scale belongs to 16 weights), then, for formats with mins, f32[16 R].
Tile block (32 inputs): int8 [8][T][4], scale f32[T], scale * sum f32[T], sums of 16 i32[2][T].
Formats of 256 weights take inputs of one scale per 256: their tiles hold the sum alone, and the
scale is multiplied once per 256 inputs.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.compute.cpu.kernels.formats import chunk_bytes
from engine.compute.cpu.kernels.rows import load_upto, store_upto
from engine.compute.cpu.kernels.words import count, indices, word
from engine.native.simd import (
    F32,
    I32,
    I64,
    LEVEL,
    Tile,
    atomic_add,
    callee_out_of_line,
    copy_bytes,
    dot_tile_ir,
    f32x16,
    fma_ir,
    i8x64,
    i32x16,
    ir_type,
    load_f32x16,
    load_ir,
    prefetch,
    ptr,
    shuf,
    splat_ir,
    store_u8x64,
    u8x64,
)

GEMM = indices("matmul/gemm")
R, T = (4, 4) if LEVEL == "avx512" else (1, 2)  # the registers of one micro-kernel: R * T sums
ROWS = 16 * R
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


def register_tile(n):
    """Return the type of n f32x16 in registers, load(c, is_first: zeros) and store(c, tile)."""
    tile = Tile(f32x16, n)

    def emit_load(context, b, sig, a):
        value, zero = ir.Constant(ir_type(tile), ir.Undefined), ir.Constant(ir_type(f32x16), None)
        first = b.icmp_signed("!=", a[1], I64(0))
        for i in range(n):
            v = b.select(first, zero, load_ir(b, a[0], ir_type(f32x16), 64 * i))
            value = b.insert_value(value, v, i)
        return value

    def emit_store(context, b, sig, a):
        for i in range(n):
            place = ptr(b, b.add(a[0], I64(64 * i)), ir_type(f32x16))
            b.store(b.extract_value(a[1], i), place, align=1)
        return context.get_dummy_value()

    @intrinsic
    def load(typing, c, is_first):
        return tile(types.int64, types.int64), emit_load

    @intrinsic
    def store(typing, c, value):
        return types.void(types.int64, tile), emit_store

    return tile, load, store


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


def transposer(offsets):
    """Make transpose(source, source_step, target): column j of 16 rows of 16 dwords goes to
    target + offsets[j], or nowhere where that is None."""

    def emit(context, b, sig, a):
        v = ir_type(i32x16)
        rows = [load_ir(b, b.add(a[0], b.mul(a[1], I64(i))), v) for i in range(16)]
        for s in (1, 2, 4, 8):  # exchange blocks of s between rows i and i + s
            low = [lane if not lane & s else 16 + (lane ^ s) for lane in range(16)]
            high = [(lane | s) if not lane & s else 16 + lane for lane in range(16)]
            for i in range(16):
                if not i & s:
                    x, y = rows[i], rows[i + s]
                    rows[i], rows[i + s] = shuf(b, x, y, low), shuf(b, x, y, high)
        for row, offset in zip(rows, offsets, strict=True):
            if offset is not None:
                b.store(row, ptr(b, b.add(a[2], I64(offset)), v), align=1)
        return context.get_dummy_value()

    @intrinsic
    def transpose(typing, source, source_step, target):
        return types.void(*[types.int64] * 3), emit

    return transpose


def panel_block(form):
    """Return the bytes of a panel block."""
    return R * 512 + ROWS * 4 * (1 + (form.per_scale == 16) + form.has_min)


# Scratch of one thread: unpacked rows, their scales, a spare block, the panel, the C tiles.
SCALES_AT = ROWS * 256
SPARE_AT = SCALES_AT + ROWS * 64
PANEL_AT = SPARE_AT + 256
SUMS_AT = PANEL_AT + 8 * (R * 512 + ROWS * 4 * 2)


def unpacker(form):
    """Make unpack_panel: rows [r, r + 16 R), clamped below r1, of one chunk into a panel."""
    block, size, per_chunk = panel_block(form), form.n_bytes, chunk_bytes(form)
    unpack, scales, is_legacy = form.unpack, form.scales, form.values == 32
    spread_weights = transposer([j // 8 * block + j % 8 * R * 64 for j in range(16)])
    if form.per_scale == 16:
        places = [R * 512 + j // 2 * block + j % 2 * ROWS * 4 for j in range(16)]
    else:
        mins = [R * 512 + j * block + ROWS * 4 if form.has_min else None for j in range(8)]
        places = [R * 512 + j * block for j in range(8)] + mins
    spread_scales = transposer(places)

    @callee_out_of_line
    def unpack_panel(w, row_bytes, r, r1, chunk, n_blocks, s):
        for i in range(ROWS):
            p = w + min(r + i, r1 - 1) * row_bytes + chunk * per_chunk
            for c in range(0, per_chunk, 64):  # so many streams are too many for the hardware
                prefetch(p + per_chunk + c)
            for j in range(n_blocks // 2):
                store_u8x64(s + i * 256 + j * 64, unpack(p, j))
            if is_legacy and n_blocks & 1:  # half a pair: nothing is read behind it
                copy_bytes(p + (n_blocks - 1) * size, s + SPARE_AT, size)
                store_u8x64(s + i * 256 + n_blocks * 32 - 32, unpack(s + SPARE_AT, 0))
            scales(p, n_blocks, s + SCALES_AT + i * 64)
        for h in range(R):
            target = s + PANEL_AT + h * 64
            for j in range((n_blocks + 1) // 2):
                spread_weights(s + h * 4096 + j * 64, 256, target + 2 * j * block)
            spread_scales(s + SCALES_AT + h * 1024, 64, target)

    return unpack_panel


@callee_out_of_line
def write_sums(c, y, ldy, n_tokens, r, r1, bias, add):
    """y[t][r .. min(r + 16 R, r1)] = C (+ bias) (+ y)."""
    for t in range(n_tokens):
        for i in range(0, min(ROWS, r1 - r), 16):
            left = r1 - r - i
            v = load_f32x16(c + (t * ROWS + i) * 4)
            place = y + t * ldy + (r + i) * 4
            if bias:
                v = v + load_upto(bias + (r + i) * 4, left)
            if add:
                v = v + load_upto(place, left)
            store_upto(place, v, left)


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
