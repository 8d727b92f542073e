"""Panels of weight rows, unpacked and transposed for products of many rows; results written back.

Panel block (32 inputs): bytes [8 groups of 4 inputs][16 R rows][4], then scales f32[16 R] (twice
where a scale belongs to 16 weights), then, for formats with mins, f32[16 R].
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.compute.cpu.kernels.formats import chunk_bytes
from engine.compute.cpu.kernels.rows import load_upto, store_upto
from engine.native.simd import (
    I64,
    LEVEL,
    Tile,
    callee_out_of_line,
    copy_bytes,
    f32x16,
    i32x16,
    ir_type,
    load_f32x16,
    load_ir,
    prefetch,
    ptr,
    shuf,
    store_u8x64,
)

R, T = (4, 4) if LEVEL == "avx512" else (1, 2)  # the registers of one micro-kernel: R * T sums
ROWS = 16 * R


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
