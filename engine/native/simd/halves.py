"""F16 and BF16 to F32 and back; F16 by hardware where there is F16C or NEON, else by bit moves."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.native import level
from engine.native.simd.vectors import (
    F16,
    F32,
    I16,
    I32,
    call,
    f32x4,
    f32x16,
    i16x16,
    ir_type,
    load_ir,
    ptr,
    shuf,
)

_TARGET = level.current()
HAS_F16C = "f16c" in _TARGET.features or _TARGET.name == "neon"


def f16_to_f32_ir(b, h):
    """Emit <n x i16> of IEEE halves -> <n x float>."""
    n = h.type.count
    if HAS_F16C:
        return b.fpext(b.bitcast(h, ir.VectorType(F16, n)), ir.VectorType(F32, n))
    # Move exponent and mantissa into place, rescale by 2^112 (right for subnormals too), add sign.
    ints, floats = ir.VectorType(I32, n), ir.VectorType(F32, n)

    def c(value):
        return ir.Constant(ints, [value] * n)

    x = b.zext(h, ints)
    size = b.bitcast(b.shl(b.and_(x, c(0x7FFF)), c(13)), floats)
    size = b.fmul(size, ir.Constant(floats, [2.0**112] * n))
    return b.bitcast(b.or_(b.bitcast(size, ints), b.shl(b.and_(x, c(0x8000)), c(16))), floats)


def f32_to_f16_ir(b, x):
    """Emit <n x float> -> <n x i16> of IEEE halves, nearest even; too large gives inf."""
    n = x.type.count
    if HAS_F16C:
        return b.bitcast(b.fptrunc(x, ir.VectorType(F16, n)), ir.VectorType(I16, n))
    ints, floats = ir.VectorType(I32, n), ir.VectorType(F32, n)

    def c(value):
        return ir.Constant(ints, [value] * n)

    u = b.bitcast(x, ints)
    sign = b.and_(b.lshr(u, c(16)), c(0x8000))
    size = call(
        b,
        f"llvm.minnum.v{n}f32",
        floats,
        [b.bitcast(b.and_(u, c(0x7FFFFFFF)), floats), ir.Constant(floats, [65536.0] * n)],
    )
    size = b.bitcast(b.fmul(size, ir.Constant(floats, [2.0**-112] * n)), ints)
    size = b.add(size, b.add(c(0xFFF), b.and_(b.lshr(size, c(13)), c(1))))
    return b.trunc(b.or_(sign, b.lshr(size, c(13))), ir.VectorType(I16, n))


def bf16_to_f32_ir(b, h):
    """Emit <n x i16> of bfloat16 -> <n x float>."""
    ints = ir.VectorType(I32, h.type.count)
    moved = b.shl(b.zext(h, ints), ir.Constant(ints, [16] * h.type.count))
    return b.bitcast(moved, ir.VectorType(F32, h.type.count))


def _first_lane(b, h):
    return b.insert_element(ir.Constant(ir.VectorType(I16, 8), None), h, I32(0))


@intrinsic
def load_f16x16(typing, addr):
    """16 halves at addr -> f32x16."""

    def emit(context, b, sig, a):
        return f16_to_f32_ir(b, load_ir(b, a[0], ir_type(i16x16)))

    return f32x16(types.int64), emit


@intrinsic
def load_f16x4(typing, addr):
    """4 halves at addr -> f32x4."""

    def emit(context, b, sig, a):
        return f16_to_f32_ir(b, load_ir(b, a[0], ir.VectorType(I16, 4)))

    return f32x4(types.int64), emit


@intrinsic
def load_bf16x16(typing, addr):
    """16 bfloat16 at addr -> f32x16."""

    def emit(context, b, sig, a):
        return bf16_to_f32_ir(b, load_ir(b, a[0], ir_type(i16x16)))

    return f32x16(types.int64), emit


@intrinsic
def store_f16x16(typing, addr, v):
    """f32x16 -> 16 halves at addr."""

    def emit(context, b, sig, a):
        b.store(f32_to_f16_ir(b, a[1]), ptr(b, a[0], ir_type(i16x16)), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, f32x16), emit


@intrinsic
def load_f16(typing, addr):
    """One half at addr -> float32."""

    def emit(context, b, sig, a):
        v = f16_to_f32_ir(b, _first_lane(b, load_ir(b, a[0], I16)))
        return b.extract_element(v, I32(0))

    return types.float32(types.int64), emit


@intrinsic
def load_bf16(typing, addr):
    """One bfloat16 at addr -> float32."""

    def emit(context, b, sig, a):
        v = bf16_to_f32_ir(b, _first_lane(b, load_ir(b, a[0], I16)))
        return b.extract_element(v, I32(0))

    return types.float32(types.int64), emit


def halves(n):
    """Make halves(addr, ...): n halves at n addresses, each repeated 16/n times -> f32x16."""
    lanes = [i for i in range(n) for _ in range(16 // n)]

    def emit(context, b, sig, a):
        v = ir.Constant(ir.VectorType(I16, 8), None)
        for i, addr in enumerate(a):
            v = b.insert_element(v, load_ir(b, addr, I16), I32(i))
        if HAS_F16C:
            return f16_to_f32_ir(b, shuf(b, v, v, lanes))
        f = f16_to_f32_ir(b, v)
        return shuf(b, f, f, lanes)

    @intrinsic
    def one(typing, p0):
        return f32x16(types.int64), emit

    @intrinsic
    def two(typing, p0, p1):
        return f32x16(types.int64, types.int64), emit

    return one if n == 1 else two


halves1, halves2 = halves(1), halves(2)
