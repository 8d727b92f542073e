"""What threads need: atomics, the spin-wait hint, prefetch, calls by address, C functions."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from engine.native import level
from engine.native.simd.dots import IS_X86
from engine.native.simd.vectors import I8, I32, I64, call, ptr


@intrinsic
def atomic_add(typing, addr, n):
    """Sequentially consistent fetch-add on the int64 at addr; returns the old value."""

    def emit(context, b, sig, a):
        return b.atomic_rmw("add", ptr(b, a[0], I64), a[1], "seq_cst")

    return types.int64(types.int64, types.int64), emit


@intrinsic
def atomic_load(typing, addr):
    """Acquire load of the int64 at addr."""

    def emit(context, b, sig, a):
        return b.load_atomic(ptr(b, a[0], I64), "acquire", 8, typ=I64)

    return types.int64(types.int64), emit


@intrinsic
def atomic_load_i32(typing, addr):
    """Acquire load of the int32 at addr."""

    def emit(context, b, sig, a):
        return b.load_atomic(ptr(b, a[0], I32), "acquire", 4, typ=I32)

    return types.int32(types.int64), emit


@intrinsic
def atomic_store(typing, addr, n):
    """Sequentially consistent store to the int64 at addr."""

    def emit(context, b, sig, a):
        b.store_atomic(a[1], ptr(b, a[0], I64), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), emit


@intrinsic
def pause(typing):
    """Spin-wait hint."""

    def emit(context, b, sig, a):
        if IS_X86:
            call(b, "llvm.x86.sse2.pause", ir.VoidType(), [])
        elif level.current().name == "neon":
            call(b, "llvm.aarch64.hint", ir.VoidType(), [I32(1)])
        return context.get_dummy_value()

    return types.void(), emit


def _prefetcher(locality):
    """Make prefetch(addr) for reading; any address is allowed."""

    @intrinsic
    def prefetch(typing, addr):
        def emit(context, b, sig, a):
            p = ptr(b, a[0], I8)
            shape = ir.FunctionType(ir.VoidType(), [p.type, I32, I32, I32])
            f = cgutils.get_or_insert_function(b.module, shape, "llvm.prefetch.p0")
            b.call(f, [p, I32(0), I32(locality), I32(1)])
            return context.get_dummy_value()

        return types.void(types.int64), emit

    return prefetch


# Into all cache levels, and into all but the first: that one has few slots for lines under way.
prefetch, prefetch_l2 = _prefetcher(3), _prefetcher(2)


@intrinsic
def call_kernel(typing, fn, args, thread, n_threads):
    """Call void fn(int64 args, int64 thread, int64 n_threads) through its address."""

    def emit(context, b, sig, a):
        shape = ir.FunctionType(ir.VoidType(), [I64] * 3)
        b.call(b.inttoptr(a[0], shape.as_pointer()), a[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), emit


def c_function(name, n_args):
    """Make a call of the C function int64 name(int64 * n_args), found by its symbol when loaded.

    n_args is 0 (sched_yield), 4 (the waits of Windows and macOS) or 7 (syscall).
    """

    def emit(context, b, sig, a):
        return call(b, name, I64, list(a))

    @intrinsic
    def none(typing):
        return types.int64(), emit

    @intrinsic
    def four(typing, a0, a1, a2, a3):
        return types.int64(*[types.int64] * 4), emit

    @intrinsic
    def seven(typing, a0, a1, a2, a3, a4, a5, a6):
        return types.int64(*[types.int64] * 7), emit

    return {0: none, 4: four, 7: seven}[n_args]
