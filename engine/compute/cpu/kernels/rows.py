"""Rows of any length: loads and stores that stop at a row's end, and maps over a row."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.native.simd import (
    F32,
    I32,
    I64,
    call,
    callee,
    const,
    f32x16,
    i32x16,
    ir_type,
    load_f32x16,
    ptr,
    splat_ir,
    store_f32x16,
)


def _lanes_below(b, n):
    """Emit the mask of lanes < n for an int64 n >= 0."""
    limit = splat_ir(b, b.trunc(n, I32), 16)
    return b.icmp_signed("<", const(i32x16, list(range(16))), limit)


@intrinsic
def load_part(typing, addr, n):
    """The first n (0..16) floats at addr, zeros after; bytes beyond are not touched."""

    def emit(context, b, sig, a):
        t = ir_type(f32x16)
        args = [ptr(b, a[0], t), I32(1), _lanes_below(b, a[1]), const(f32x16, 0.0)]
        return call(b, "llvm.masked.load.v16f32.p0", t, args)

    return f32x16(types.int64, types.int64), emit


@intrinsic
def store_part(typing, addr, v, n):
    """Store the first n (0..16) lanes of v at addr; bytes beyond are not touched."""

    def emit(context, b, sig, a):
        args = [a[1], ptr(b, a[0], ir_type(f32x16)), I32(1), _lanes_below(b, a[2])]
        call(b, "llvm.masked.store.v16f32.p0", ir.VoidType(), args)
        return context.get_dummy_value()

    return types.void(types.int64, f32x16, types.int64), emit


@intrinsic
def scatter_f32x16(typing, addr, v, stride):
    """Store lane i of v alone at addr + i * stride bytes."""

    def emit(context, b, sig, a):
        for i in range(16):
            at = ptr(b, b.add(a[0], b.mul(a[2], I64(i))), F32)
            b.store(b.extract_element(a[1], I32(i)), at, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, f32x16, types.int64), emit


@callee
def load_upto(addr, n):
    """The first min(n, 16) floats at addr, zeros after."""
    return load_f32x16(addr) if n >= 16 else load_part(addr, n)


@callee
def store_upto(addr, v, n):
    """Store the first min(n, 16) lanes of v at addr."""
    if n >= 16:
        store_f32x16(addr, v)
    else:
        store_part(addr, v, n)


STRETCH = 1024  # floats of a row that one thread takes at a time


@callee
def n_stretches(n_rows, n):
    """Work items over n_rows rows of n floats."""
    return n_rows * ((n + STRETCH - 1) // STRETCH)


@callee
def stretch(item, n):
    """Row, first column and end column of a work item over rows of n floats."""
    per_row = (n + STRETCH - 1) // STRETCH
    first = item % per_row * STRETCH
    return item // per_row, first, min(n, first + STRETCH)
