"""Loads and stores of vectors and scalars at int64 addresses, all unaligned."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from engine.native.simd.vectors import (
    I8,
    I32,
    I64,
    SCALAR_IR,
    callee_out_of_line,
    constant,
    f32x4,
    f32x16,
    i8x16,
    i8x64,
    i16x8,
    i32x4,
    i32x16,
    ir_type,
    load_ir,
    ptr,
    splat_ir,
    u8x16,
    u8x32,
    u8x64,
)


def _loader(result, ty):
    @intrinsic
    def load(typing, addr):
        return result(types.int64), lambda context, b, sig, a: load_ir(b, a[0], ty)

    return load


def _storer(value, ty):
    def emit(context, b, sig, a):
        b.store(a[1], ptr(b, a[0], ty), align=1)
        return context.get_dummy_value()

    @intrinsic
    def store(typing, addr, v):
        return types.void(types.int64, value), emit

    return store


def loader(vt):
    """Make load(addr) -> vector of type vt."""
    return _loader(vt, ir_type(vt))


def storer(vt):
    """Make store(addr, vector of type vt)."""
    return _storer(vt, ir_type(vt))


def splatter(vt):
    """Make splat(scalar) -> vector of type vt."""

    @intrinsic
    def splat(typing, x):
        return vt(vt.elem), lambda context, b, sig, a: splat_ir(b, a[0], vt.n)

    return splat


load_u8x16, load_u8x32, load_u8x64 = loader(u8x16), loader(u8x32), loader(u8x64)
load_i8x16, load_i8x64 = loader(i8x16), loader(i8x64)
load_i32x16, load_f32x4, load_f32x16 = loader(i32x16), loader(f32x4), loader(f32x16)
store_u8x16, store_u8x64 = storer(u8x16), storer(u8x64)
store_i8x16, store_i8x64 = storer(i8x16), storer(i8x64)
store_i32x16, store_f32x16 = storer(i32x16), storer(f32x16)

load_f32, load_f64 = (_loader(t, SCALAR_IR[t]) for t in (types.float32, types.float64))
load_i8, load_i32, load_i64 = (
    _loader(t, SCALAR_IR[t]) for t in (types.int8, types.int32, types.int64)
)
load_u8, load_u16, load_u32, load_u64 = (
    _loader(t, SCALAR_IR[t]) for t in (types.uint8, types.uint16, types.uint32, types.uint64)
)
store_f32, store_f64 = (_storer(t, SCALAR_IR[t]) for t in (types.float32, types.float64))
store_i8, store_i32, store_i64 = (
    _storer(t, SCALAR_IR[t]) for t in (types.int8, types.int32, types.int64)
)
store_u8, store_u16, store_u32 = (
    _storer(t, SCALAR_IR[t]) for t in (types.uint8, types.uint16, types.uint32)
)

splat_f32, splat_i32, splat_u8 = splatter(f32x16), splatter(i32x16), splatter(u8x64)
load_i16x8, store_i16 = loader(i16x8), _storer(types.int16, SCALAR_IR[types.int16])
zero_f32x4, zero_f32x16, zero_i32x4, zero_i32x16 = (
    constant(t, 0) for t in (f32x4, f32x16, i32x4, i32x16)
)
zero_i8x16, zero_u8x16 = constant(i8x16, 0), constant(u8x16, 0)


@intrinsic
def first_lane(typing, x):
    """A float32 -> f32x16 that holds it in lane 0 and zeros elsewhere."""

    def emit(context, b, sig, a):
        return b.insert_element(ir.Constant(ir_type(f32x16), [0.0] * 16), a[0], I32(0))

    return f32x16(types.float32), emit


def stack(n_bytes):
    """Make stack_bytes(): the address of n_bytes on the stack of the calling function."""

    def emit(context, b, sig, a):
        room = cgutils.alloca_once(b, ir.ArrayType(I8, n_bytes))
        room.align = 64
        return b.ptrtoint(room, I64)

    @intrinsic
    def stack_bytes(typing):
        return types.int64(), emit

    return stack_bytes


@callee_out_of_line
def copy_bytes(source, target, n):
    """Copy n bytes."""
    for i in range(n):
        store_u8(target + i, load_u8(source + i))
