"""Vector types as Numba values, and the LLVM helpers that every other part of the layer emits with.

`Vec(elem, n)` is a Numba type whose model is the LLVM type `<n x elem>`. The code generator splits
a 512-bit vector into two ymm or four NEON registers where the machine has nothing wider.
"""

from collections.abc import Callable

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from engine.native.pipeline import KernelPipeline

# Options of every kernel and callee. Never full fast-math: it cancels (x + M) - M in exp.
OPTIONS = dict(
    fastmath={"contract", "nsz"},
    error_model="numpy",
    nogil=True,
    boundscheck=False,
    no_cpython_wrapper=True,
    no_cfunc_wrapper=True,
    _nrt=False,
    pipeline_class=KernelPipeline,
)


def callee(fn: Callable) -> Callable:
    """Decorate a function that kernels call; it is always inlined into them."""
    return njit(forceinline=True, **OPTIONS)(fn)


def callee_out_of_line(fn: Callable) -> Callable:
    """Decorate a function that kernels call and the optimizer may keep as one copy.

    It says so aloud, because Numba hands the flags of an inlined caller on to what it calls.
    """
    return njit(forceinline=False, **OPTIONS)(fn)


class Vec(types.Type):
    """SIMD value `<n x elem>`."""

    def __init__(self, elem, n):
        self.elem, self.n = elem, n
        super().__init__(f"Vec({elem},{n})")


class Tile(types.Type):
    """`count` vectors held in registers: the accumulators of a matrix tile."""

    def __init__(self, vec, count):
        self.vec, self.count = vec, count
        super().__init__(f"Tile({vec},{count})")


I1, I8, I16, I32, I64 = (ir.IntType(n) for n in (1, 8, 16, 32, 64))
F16, F32, F64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()
SCALAR_IR = {
    types.int8: I8,
    types.uint8: I8,
    types.int16: I16,
    types.uint16: I16,
    types.int32: I32,
    types.uint32: I32,
    types.int64: I64,
    types.uint64: I64,
    types.float32: F32,
    types.float64: F64,
}


def ir_type(t):
    """Return the LLVM type of a Vec or Tile."""
    if isinstance(t, Tile):
        return ir.ArrayType(ir_type(t.vec), t.count)
    return ir.VectorType(SCALAR_IR[t.elem], t.n)


@register_model(Vec)
@register_model(Tile)
class _Model(models.PrimitiveModel):
    def __init__(self, manager, t):
        super().__init__(manager, t, ir_type(t))


u8x16, u8x32, u8x64 = (Vec(types.uint8, n) for n in (16, 32, 64))
i8x16, i8x32, i8x64 = (Vec(types.int8, n) for n in (16, 32, 64))
i16x8, i16x16, i16x32 = (Vec(types.int16, n) for n in (8, 16, 32))
u16x16, u16x32 = (Vec(types.uint16, n) for n in (16, 32))
i32x4, i32x16, u32x16 = Vec(types.int32, 4), Vec(types.int32, 16), Vec(types.uint32, 16)
f32x4, f32x8, f32x16 = (Vec(types.float32, n) for n in (4, 8, 16))


# ---------------------------------------------------------------- while emitting LLVM
def const(vt, values):
    """Return a constant vector; a scalar is repeated."""
    values = list(values) if isinstance(values, (list, tuple)) else [values] * vt.n
    return ir.Constant(ir_type(vt), values)


def shuf(b, x, y, lanes):
    """Emit the lanes (constant indices into x then y) as a vector."""
    return b.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, len(lanes)), list(lanes)))


def splat_ir(b, x, n):
    """Emit a vector of n copies of scalar x."""
    undefined = ir.Constant(ir.VectorType(x.type, n), ir.Undefined)
    return shuf(b, b.insert_element(undefined, x, I32(0)), undefined, [0] * n)


def call(b, name, result, args):
    """Emit a call of an LLVM intrinsic or C symbol, declaring it on first use."""
    shape = ir.FunctionType(result, [a.type for a in args])
    return b.call(cgutils.get_or_insert_function(b.module, shape, name), args)


def half(b, x, upper):
    """Emit the lower (upper=0) or upper (1) half of x."""
    n = x.type.count // 2
    return shuf(b, x, x, range(n * upper, n * upper + n))


def join(b, x, y):
    """Emit the concatenation of x and y."""
    return shuf(b, x, y, range(2 * x.type.count))


def ptr(b, addr, ty):
    """Emit int64 address -> pointer."""
    return b.inttoptr(addr, ty.as_pointer())


def load_ir(b, addr, ty, offset=0):
    """Emit an unaligned load of LLVM type `ty` at addr + offset (a Python int, in bytes)."""
    return b.load(ptr(b, b.add(addr, I64(offset)) if offset else addr, ty), align=1, typ=ty)


def fma_ir(b, x, y, z):
    """Emit x*y + z on <n x float>: fused where the CPU can, else a call per lane would be."""
    return call(b, f"llvm.fmuladd.v{x.type.count}f32", x.type, [x, y, z])


# ---------------------------------------------------------------- makers of intrinsics
def constant(vt, values):
    """Make a zero-argument function that gives a constant vector."""

    @intrinsic
    def make(typing):
        return vt(), lambda context, b, sig, a: const(vt, values)

    return make


def shuffle(source, lanes):
    """Make shuffle(x, y): the given lanes of the concatenation x|y."""
    lanes = list(lanes)
    out = Vec(source.elem, len(lanes))

    @intrinsic
    def pick(typing, x, y):
        return out(source, source), lambda context, b, sig, a: shuf(b, a[0], a[1], lanes)

    return pick


def bitcaster(source, target):
    """Make a function that reinterprets the bits of a vector."""

    @intrinsic
    def cast(typing, x):
        return target(source), lambda context, b, sig, a: b.bitcast(a[0], ir_type(target))

    return cast


def converter(source, target):
    """Make a lane-wise value conversion (widen, narrow, int <-> float)."""

    def emit(context, b, sig, a):
        s, d, t = source.elem, target.elem, ir_type(target)
        if s == types.float32:
            return b.fptosi(a[0], t)
        if d == types.float32:
            return b.sitofp(a[0], t) if s.signed else b.uitofp(a[0], t)
        if s.bitwidth > d.bitwidth:
            return b.trunc(a[0], t)
        return b.sext(a[0], t) if s.signed else b.zext(a[0], t)

    @intrinsic
    def convert(typing, x):
        return target(source), emit

    return convert


as_i8x64, as_u8x64 = bitcaster(u8x64, i8x64), bitcaster(i8x64, u8x64)
as_i32x16, as_f32x16 = bitcaster(f32x16, i32x16), bitcaster(i32x16, f32x16)
u8_as_u16, u16_as_u8 = bitcaster(u8x64, u16x32), bitcaster(u16x32, u8x64)
to_f32, f32_to_i32 = converter(i32x16, f32x16), converter(f32x16, i32x16)
u8_to_i32, i8_to_i32 = converter(u8x16, i32x16), converter(i8x16, i32x16)
i8_to_f32, i32_to_i8 = converter(i8x16, f32x16), converter(i32x16, i8x16)
iota_i32 = constant(i32x16, range(16))
concat_u8x32 = shuffle(u8x32, range(64))
