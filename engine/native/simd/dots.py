"""The 8-bit dot product: the one operation whose form differs per CPU level."""

import platform

from llvmlite import ir
from numba.extending import intrinsic

from engine.native import level
from engine.native.simd.vectors import (
    I1,
    I16,
    I32,
    call,
    half,
    i8x64,
    i16x32,
    i32x16,
    join,
    shuf,
    u8x64,
)

LEVEL = level.current().name
FEATURES = level.current().features
IS_X86 = platform.machine().lower() in ("x86_64", "amd64")
_YMM = LEVEL in ("avx2", "avxvnni")
# What the dot of this level takes for 8-bit weights; unsigned ones are kept 128 higher.
BYTES = "u8" if LEVEL in ("avx512", "avxvnni") else "s8"


def _pair_dot_i16(b, x, y):
    """Emit <2n x i16> . <2n x i16> -> <n x i32>: sums of adjacent products."""
    n = x.type.count
    if _YMM:
        return call(b, "llvm.x86.avx2.pmadd.wd", ir.VectorType(I32, 8), [x, y])
    t = ir.VectorType(I32, n)
    p = b.mul(b.sext(x, t), b.sext(y, t))  # LLVM matches this shape to pmaddwd on x86
    return b.add(shuf(b, p, p, range(0, n, 2)), shuf(b, p, p, range(1, n, 2)))


def _widened_dot(b, acc, w, x, kind):
    """Emit the dot without a special instruction: widen to i16, pair-dot, add pairs."""
    n = acc.type.count
    wide = ir.VectorType(I16, 4 * n)
    w, x = b.sext(w, wide) if kind == "s8" else b.zext(w, wide), b.sext(x, wide)
    p = _pair_dot_i16(b, w, x)
    pairs = b.add(shuf(b, p, p, range(0, 2 * n, 2)), shuf(b, p, p, range(1, 2 * n, 2)))
    return b.add(acc, pairs)


def _pair_sums(b, w, x, kind):
    """Emit AVX2's <16 x i16> sums of adjacent products; saturates for w > 128, so u8 is no kind."""
    if kind == "s8":  # move the sign of w to x
        x = call(b, "llvm.x86.avx2.psign.b", x.type, [x, w])
        w = call(b, "llvm.abs.v32i8", w.type, [w, ir.Constant(I1, 0)])
    return call(b, "llvm.x86.avx2.pmadd.ub.sw", ir.VectorType(I16, 16), [w, x])


def dot_ir(b, acc, w, x, kind):
    """Emit acc <n x i32> + 4-byte dots of w <4n x i8> and x <4n x i8> in [-127, 127].

    kind says what w holds: "u4" to "u7" unsigned values of that many bits, which every level takes;
    "u8" unsigned and "s8" signed bytes, of which each level has the one named by BYTES.
    """
    ints, n = acc.type, acc.type.count
    if n > {"avx512": 16, "avx2": 8, "avxvnni": 8}.get(LEVEL, 4):
        parts = [dot_ir(b, half(b, acc, i), half(b, w, i), half(b, x, i), kind) for i in (0, 1)]
        return join(b, *parts)
    if LEVEL in ("avx512", "avxvnni"):
        bits = {"avx512": 512, "avxvnni": 256}[LEVEL]
        args = [acc, b.bitcast(w, ints), b.bitcast(x, ints)]
        return call(b, f"llvm.x86.avx512.vpdpbusd.{bits}", ints, args)
    if LEVEL == "neon":
        return call(b, "llvm.aarch64.neon.sdot.v4i32.v16i8", ints, [acc, w, x])
    if LEVEL == "avx2":
        return b.add(acc, _added_pairs(b, _pair_sums(b, w, x, kind)))
    return _widened_dot(b, acc, w, x, kind)


def _n_int16_sums(kind):
    """Return how many products of a kind AVX2 may add up as int16; 1 where there is no gain."""
    if LEVEL != "avx2" or kind == "s8":
        return 1
    return max(1, 32767 // (((1 << int(kind[1:])) - 1) * 254))


def _added_pairs(b, p):
    """Emit <2n x i16> -> <n x i32>: adjacent values added, in parts of 16."""
    ones = ir.Constant(ir.VectorType(I16, 16), [1] * 16)
    return _in_parts(b, lambda v: _pair_dot_i16(b, v, ones), 16, p)


def dot_tile_ir(b, shape, groups, start, weights, inputs, kind):
    """Emit T x R sums: start(t) + the dots of weights(g)[r] and inputs(g, t) over groups g.

    shape is (T, R). Products are emitted group by group: each vector of weights meets every input
    while it is in a register; a start that can be added last is made last, for the same reason.
    """
    n = _n_int16_sums(kind)
    places = [(t, r) for t in range(shape[0]) for r in range(shape[1])]
    if n == 1:
        starts = [start(t) for t in range(shape[0])]
        sums = {place: starts[place[0]] for place in places}
        for g in groups:
            w = weights(g)
            for t in range(shape[0]):
                x = inputs(g, t)
                for r in range(shape[1]):
                    sums[t, r] = dot_ir(b, sums[t, r], w[r], x, kind)
        return sums
    sums = {}
    for first in range(0, len(groups), n):
        pairs = {}
        for g in groups[first : first + n]:
            w = weights(g)
            for t in range(shape[0]):
                x = inputs(g, t)
                for r in range(shape[1]):
                    p = _in_parts(b, lambda w, x: _pair_sums(b, w, x, kind), 32, w[r], x)
                    pairs[t, r] = b.add(pairs[t, r], p) if (t, r) in pairs else p
        for place in places:
            total = _added_pairs(b, pairs[place])
            sums[place] = b.add(sums[place], total) if place in sums else total
    return {(t, r): b.add(sums[t, r], start(t)) for t, r in places}


@intrinsic
def dot_u7i8(typing, acc, w, x):
    """acc[i] += sum_j w[4i+j] * x[4i+j] with w <= 127 (4-, 5- and 6-bit weights)."""
    return i32x16(i32x16, u8x64, i8x64), lambda context, b, sig, a: dot_ir(b, *a, "u7")


@intrinsic
def dot_bytes(typing, acc, w, x):
    """acc[i] += sum_j w[4i+j] * x[4i+j] with w unsigned or signed, as BYTES says."""
    return i32x16(i32x16, u8x64, i8x64), lambda context, b, sig, a: dot_ir(b, *a, BYTES)


def _in_parts(b, emit, width, *vectors):
    """Emit a lane-wise operation on vectors in parts of `width` elements, then join those."""
    if vectors[0].type.count == width:
        return emit(*vectors)
    parts = [_in_parts(b, emit, width, *(half(b, v, i) for v in vectors)) for i in (0, 1)]
    return join(b, *parts)


def pack_ir(b, x, y):
    """Emit x and y narrowed to half the width, 128 bits of x and 128 of y in turn; values fit."""
    n, bits = x.type.count, x.type.element.width
    narrow = ir.IntType(bits // 2)
    if not IS_X86:
        parts = [b.trunc(v, ir.VectorType(narrow, n)) for v in (x, y)]
        per = 128 // bits
        lanes = [i // (2 * per) * per + i % per + n * (i // per % 2) for i in range(2 * n)]
        return shuf(b, *parts, lanes)
    prefix, size, suffix = {"avx512": ("avx512", 512, ".512")}.get(LEVEL, ("sse2", 128, ".128"))
    if _YMM:
        prefix, size, suffix = "avx2", 256, ""
    name = f"llvm.x86.{prefix}.{ {32: 'packssdw', 16: 'packsswb'}[bits] }{suffix}"
    out = ir.VectorType(narrow, 2 * size // bits)
    return _in_parts(b, lambda *v: call(b, name, out, v), size // bits, x, y)


@intrinsic
def pack_i16(typing, x, y):
    """Two i32x16 whose lanes fit int16 -> i16x32: four lanes of x, four of y, the next of x, …"""
    return i16x32(i32x16, i32x16), lambda context, b, sig, a: pack_ir(b, *a)


@intrinsic
def dot_pairs(typing, acc, x, y):
    """acc[i] += x[2i] * y[2i] + x[2i+1] * y[2i+1] on int16 vectors of one length."""

    def emit(context, b, sig, a):
        acc, x, y = a
        n = acc.type.count
        if LEVEL == "avx512" and n == 16:
            args = [acc, *(b.bitcast(v, acc.type) for v in (x, y))]
            return call(b, "llvm.x86.avx512.vpdpwssd.512", acc.type, args)
        if IS_X86:
            width, name = (8, "avx2.pmadd.wd") if _YMM and n > 4 else (4, "sse2.pmadd.wd")
            out = ir.VectorType(I32, width)
            dot = _in_parts(b, lambda *v: call(b, f"llvm.x86.{name}", out, v), 2 * width, x, y)
        else:
            dot = _pair_dot_i16(b, x, y)
        return b.add(acc, dot)

    return acc(acc, x, y), emit
