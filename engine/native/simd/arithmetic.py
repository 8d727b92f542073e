"""Operators on vectors, reductions, rounding, exp and selects, in portable LLVM."""

import operator

from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin

from engine.native.simd import vectors as v
from engine.native.simd.vectors import (
    I32,
    SCALAR_IR,
    Vec,
    call,
    const,
    f32x16,
    i32x16,
    ir_type,
    shuf,
    splat_ir,
)

_OPERATORS = {
    operator.add: ("fadd", "add"),
    operator.sub: ("fsub", "sub"),
    operator.mul: ("fmul", "mul"),
    operator.truediv: ("fdiv", None),
    operator.and_: (None, "and_"),
    operator.or_: (None, "or_"),
    operator.xor: (None, "xor"),
    operator.lshift: (None, "shl"),
    operator.rshift: (None, "lshr"),
}


def _register(op, float_name, int_name):
    """Allow vector op vector of one type, and integer vector op integer (repeated)."""

    @infer_global(op)
    class _Template(AbstractTemplate):
        def generic(self, args, kws):
            if isinstance(args[0], Vec) and (
                args[0] == args[1] or isinstance(args[1], types.Integer)
            ):
                return signature(args[0], *args)

    def emit(context, b, sig, a):
        vt, y = sig.args[0], a[1]
        if not isinstance(sig.args[1], Vec):
            width = SCALAR_IR[vt.elem]
            y = splat_ir(b, b.trunc(y, width) if y.type.width > width.width else y, vt.n)
        name = float_name if vt.elem == types.float32 else int_name
        if op is operator.rshift and vt.elem.signed:
            name = "ashr"
        return getattr(b, name)(a[0], y)

    lower_builtin(op, Vec, Vec)(emit)
    if int_name:
        lower_builtin(op, Vec, types.Integer)(emit)


for _op, (_float_name, _int_name) in _OPERATORS.items():
    _register(_op, _float_name, _int_name)


# ---------------------------------------------------------------- float lanes
@intrinsic
def fma(typing, x, y, acc):
    """x*y + acc, fused, on float vectors of one type."""
    return x(x, x, x), lambda context, b, sig, a: v.fma_ir(b, *a)


def _llvm_function(name, n_args):
    def emit(context, b, sig, a):
        return call(b, f"llvm.{name}.v16f32", a[0].type, a)

    @intrinsic
    def unary(typing, x):
        return f32x16(f32x16), emit

    @intrinsic
    def binary(typing, x, y):
        return f32x16(f32x16, f32x16), emit

    return unary if n_args == 1 else binary


vmax, vmin = _llvm_function("maxnum", 2), _llvm_function("minnum", 2)
vabs, vround, vsqrt, vfloor = (_llvm_function(n, 1) for n in ("fabs", "rint", "sqrt", "floor"))


@intrinsic
def round_i32(typing, x):
    """Nearest-even float -> int32 for |x| < 2^22.

    Adding 1.5 * 2^23 leaves the rounded integer in the low bits; no SSE4.1 round is needed.
    """

    return i32x16(f32x16), lambda context, b, sig, a: round_ir(b, a[0])


def round_ir(b, x):
    """Emit the rounding of round_i32."""
    magic = const(f32x16, 12582912.0)
    y = b.bitcast(b.fadd(x, magic), ir_type(i32x16))
    return b.sub(y, b.bitcast(magic, ir_type(i32x16)))


def _tree(b, x, op):
    """Emit log2(n) halvings: the usual reduction."""
    n = x.type.count
    while n > 1:
        n //= 2
        x = op(shuf(b, x, x, range(n)), shuf(b, x, x, range(n, 2 * n)))
    return b.extract_element(x, I32(0))


def _larger(b):
    return lambda p, q: b.select(b.fcmp_ordered(">", p, q), p, q)


@intrinsic
def sum_f32(typing, x):
    """Sum of the lanes of a float vector."""
    return types.float32(x), lambda context, b, sig, a: _tree(b, a[0], b.fadd)


@intrinsic
def max_f32(typing, x):
    """Largest lane."""
    return types.float32(f32x16), lambda context, b, sig, a: _tree(b, a[0], _larger(b))


@intrinsic
def sum_i32(typing, x):
    """Sum of the lanes."""
    return types.int32(i32x16), lambda context, b, sig, a: _tree(b, a[0], b.add)


def exp_ir(b, x):
    """Emit exp: 2^n * p(r) with |r| <= ln2/2 and degree 6, about 1e-7 relative."""
    t, ints = ir_type(f32x16), ir_type(i32x16)

    def f(value):
        return const(f32x16, value)

    x = call(b, "llvm.maxnum.v16f32", t, [x, f(-87.0)])
    x = call(b, "llvm.minnum.v16f32", t, [x, f(88.0)])
    magic = f(12582912.0)
    n = b.fadd(b.fmul(x, f(1.4426950408889634)), magic)
    n = b.sub(b.bitcast(n, ints), b.bitcast(magic, ints))
    whole = b.sitofp(n, t)
    r = v.fma_ir(b, whole, f(-0.693359375), x)
    r = v.fma_ir(b, whole, f(2.12194440e-4), r)
    p = f(1.9875691500e-4)
    for c in (1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1):
        p = v.fma_ir(b, p, r, f(c))
    p = v.fma_ir(b, b.fmul(p, r), r, b.fadd(r, f(1.0)))
    power = b.bitcast(b.shl(b.add(n, const(i32x16, 127)), const(i32x16, 23)), t)
    return b.fmul(p, power)


@intrinsic
def vexp(typing, x):
    """exp of each lane, clamped to [-87, 88]."""
    return f32x16(f32x16), lambda context, b, sig, a: exp_ir(b, a[0])


@intrinsic
def select_lt(typing, x, y, p, q):
    """where(x < y, p, q) on i32 lanes: the mask of a tail."""

    def emit(context, b, sig, a):
        return b.select(b.icmp_signed("<", a[0], a[1]), a[2], a[3])

    return f32x16(i32x16, i32x16, f32x16, f32x16), emit


@intrinsic
def select_lt_f32(typing, x, y, p, q):
    """where(x < y, p, q) on f32 lanes."""

    def emit(context, b, sig, a):
        return b.select(b.fcmp_ordered("<", a[0], a[1]), a[2], a[3])

    return f32x16(f32x16, f32x16, f32x16, f32x16), emit
