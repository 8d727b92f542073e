"""One kernel that tests of the object machinery compile: it is small and touches every part."""

from engine.native.simd import (
    callee,
    dot_u7i8,
    load_f32x16,
    load_i8x64,
    load_i64,
    load_u8x64,
    store_f32x16,
    store_i32x16,
    vexp,
    zero_i32x16,
)


@callee
def word(args, i):
    return load_i64(args + 8 * i)


def exp_and_dot(args, thread, n_threads):
    """x@0 f32[16] -> exp in place; w@1 u8[64] . v@2 i8[64] -> out@3 i32[16]."""
    if thread == 0:
        store_f32x16(word(args, 0), vexp(load_f32x16(word(args, 0))))
        dots = dot_u7i8(zero_i32x16(), load_u8x64(word(args, 1)), load_i8x64(word(args, 2)))
        store_i32x16(word(args, 3), dots)


def kernels():
    """Return the kernels of the unit."""
    return {"exp_and_dot": exp_and_dot}
