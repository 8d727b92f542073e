"""A block of T input rows at once: their largest sizes, and their columns of a tile block.

Rows are given by the address of T addresses and an offset in bytes.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.compute.cpu.kernels.panels import T
from engine.native.simd import (
    I32,
    I64,
    Vec,
    call,
    const,
    dot_ir,
    f32x16,
    half,
    i8x64,
    i32x16,
    ir_type,
    load_ir,
    pack_ir,
    ptr,
    round_ir,
    shuf,
    splat_ir,
    u8x64,
)

f32xT = Vec(types.float32, T)


def _rows(b, rows, offset):
    return [b.add(load_ir(b, rows, I64, 8 * t), offset) for t in range(T)]


def _max(b, x, y):
    return call(b, f"llvm.maxnum.v{x.type.count}f32", x.type, [x, y])


def _abs(b, x):
    return call(b, f"llvm.fabs.v{x.type.count}f32", x.type, [x])


def _largest_lanes(b, vectors):
    """Emit <T x float>: the largest lane of each of T vectors, reduced together.

    Vectors are paired up until one is left, in which each has 16 / T lanes in a row.
    """
    own = 16  # lanes that one input has in each vector
    while len(vectors) > 1:
        own //= 2
        starts = range(0, 16, 2 * own)
        low = [start + i for start in starts for i in range(own)]
        low += [16 + i for i in low]
        high = [i + own for i in low]
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [_max(b, shuf(b, x, y, low), shuf(b, x, y, high)) for x, y in pairs]
    m = vectors[0]
    for step in (8, 4, 2, 1):
        if step < own:
            m = _max(b, m, shuf(b, m, m, [i ^ step for i in range(16)]))
    return shuf(b, m, m, [t * own for t in range(T)])


def largest(n):
    """Make largest(rows, offset): the largest size among n floats of each row -> f32 x T."""

    def emit(context, b, sig, a):
        sizes = []
        for row in _rows(b, *a):
            m = _abs(b, load_ir(b, row, ir_type(f32x16)))
            for i in range(64, 4 * n, 64):
                m = _max(b, m, _abs(b, load_ir(b, row, ir_type(f32x16), i)))
            sizes.append(m)
        return _largest_lanes(b, sizes)

    @intrinsic
    def sizes_of_rows(typing, rows, offset):
        return f32xT(types.int64, types.int64), emit

    return sizes_of_rows


largest32, largest256 = largest(32), largest(256)


def _dwords(b, ints):
    """Emit the bytes of 2 * T int vectors (row t: ints[t], then ints[T + t]) as [8][T] dwords."""
    if T == 4:
        halves = (ints[:4], ints[4:])
        return [pack_ir(b, pack_ir(b, *v[:2]), pack_ir(b, *v[2:])) for v in halves]
    packed = pack_ir(b, pack_ir(b, *ints[:2]), pack_ir(b, *ints[2:]))
    words = b.bitcast(packed, ir.VectorType(I64, 8))
    return [b.bitcast(shuf(b, words, words, [0, 2, 4, 6, 1, 3, 5, 7]), ir_type(i8x64))]


def _sums(b, dwords):
    """Emit <T x i32> twice: sums of the first and of the last 16 values of each row."""
    zero = ir.Constant(ir_type(i32x16), None)
    dots = [dot_ir(b, zero, const(u8x64, 1), v, "u7") for v in dwords]
    dots = dots if len(dots) == 2 else [half(b, dots[0], i) for i in (0, 1)]
    sums = []
    for s in dots:
        while s.type.count > T:
            s = b.add(half(b, s, 0), half(b, s, 1))
        sums.append(s)
    return sums


@intrinsic
def write_block(typing, rows, offset, sizes, has_scaled_sums, tile):
    """32 floats of each row -> a tile block; `sizes` gives the scales (127 steps to the largest).

    The second field of the block is the sum of the int8 values, times the scale if asked for.
    """

    def emit(context, b, sig, a):
        rows, offset, sizes, has_scaled_sums, tile = a
        floats, most = sizes.type, ir.Constant(sizes.type, [127.0] * T)
        is_zero = b.fcmp_ordered("==", sizes, ir.Constant(floats, None))
        inverse = b.select(is_zero, ir.Constant(floats, None), b.fdiv(most, sizes))
        factors = [splat_ir(b, b.extract_element(inverse, I32(t)), 16) for t in range(T)]
        ints = []
        for i in (0, 64):
            for row, factor in zip(_rows(b, rows, offset), factors, strict=True):
                v = load_ir(b, row, ir_type(f32x16), i)
                ints.append(round_ir(b, b.fmul(v, factor)))
        dwords = _dwords(b, ints)
        first, last = _sums(b, dwords)
        scale = b.fdiv(sizes, most)
        total = b.sitofp(b.add(first, last), floats)
        total = b.select(has_scaled_sums, b.fmul(total, scale), total)
        places = [64 * i for i in range(len(dwords))] + [32 * T, 36 * T, 40 * T, 44 * T]
        for place, v in zip(places, [*dwords, scale, total, first, last], strict=True):
            b.store(v, ptr(b, b.add(tile, I64(place)), v.type), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, f32xT, types.boolean, types.int64), emit
