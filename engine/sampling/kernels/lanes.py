"""Words of a block, comparisons of vectors as bit masks, bit casts of scalars."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.native.simd import F64, I1, I32, I64, call, f32x16, i32x16, load_ir, ptr

I16 = ir.IntType(16)


def _word(b, block, i):
    return b.add(block, b.shl(i, I64(3)))


@intrinsic
def get(typing, block, word):
    """The int64 in a word of a block."""

    def emit(context, b, sig, a):
        return load_ir(b, _word(b, *a), I64)

    return types.int64(types.int64, types.int64), emit


@intrinsic
def number(typing, block, word):
    """The f64 in a word of a block."""

    def emit(context, b, sig, a):
        return load_ir(b, _word(b, *a), F64)

    return types.float64(types.int64, types.int64), emit


@intrinsic
def put(typing, block, word, x):
    """Write an int64 to a word of a block."""

    def emit(context, b, sig, a):
        b.store(a[2], ptr(b, _word(b, a[0], a[1]), I64), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), emit


@intrinsic
def load_index(typing, addr):
    """The int32 at addr as int64."""

    def emit(context, b, sig, a):
        return b.sext(load_ir(b, a[0], I32), I64)

    return types.int64(types.int64), emit


@intrinsic
def imin(typing, x, y):
    """The smaller of two int64; the built-in min is compiled anew for each pair of types."""

    def emit(context, b, sig, a):
        return b.select(b.icmp_signed("<", a[0], a[1]), a[0], a[1])

    return types.int64(types.int64, types.int64), emit


@intrinsic
def imax(typing, x, y):
    """The larger of two int64."""

    def emit(context, b, sig, a):
        return b.select(b.icmp_signed(">", a[0], a[1]), a[0], a[1])

    return types.int64(types.int64, types.int64), emit


def _mask(b, lanes):
    return b.zext(b.bitcast(lanes, I16), I64)


@intrinsic
def mask_ge(typing, x, y):
    """Bit i is set where x[i] >= y[i]."""

    def emit(context, b, sig, a):
        return _mask(b, b.fcmp_ordered(">=", a[0], a[1]))

    return types.int64(f32x16, f32x16), emit


@intrinsic
def mask_lt(typing, x, y):
    """Bit i is set where x[i] < y[i]; never for NaN."""

    def emit(context, b, sig, a):
        return _mask(b, b.fcmp_ordered("<", a[0], a[1]))

    return types.int64(f32x16, f32x16), emit


@intrinsic
def mask_ge_i32(typing, x, y):
    """Bit i is set where x[i] >= y[i]."""

    def emit(context, b, sig, a):
        return _mask(b, b.icmp_signed(">=", a[0], a[1]))

    return types.int64(i32x16, i32x16), emit


@intrinsic
def n_bits(typing, mask):
    """How many bits are set."""

    def emit(context, b, sig, a):
        return call(b, "llvm.ctpop.i64", I64, [a[0]])

    return types.int64(types.int64), emit


@intrinsic
def lowest_bit(typing, mask):
    """Index of the lowest set bit; mask is not 0."""

    def emit(context, b, sig, a):
        return call(b, "llvm.cttz.i64", I64, [a[0], I1(1)])

    return types.int64(types.int64), emit


@intrinsic
def bits_of(typing, x):
    """The bits of an f64."""
    return types.int64(types.float64), lambda context, b, sig, a: b.bitcast(a[0], I64)


@intrinsic
def from_bits(typing, x):
    """The f64 with these bits."""
    return types.float64(types.int64), lambda context, b, sig, a: b.bitcast(a[0], F64)


@intrinsic
def f32_from_bits(typing, x):
    """The f32 whose bits are the low half of x."""

    def emit(context, b, sig, a):
        return b.bitcast(b.trunc(a[0], I32), ir.FloatType())

    return types.float32(types.int64), emit
