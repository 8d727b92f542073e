"""Row groups of Q4_0, Q4_1, Q5_0 and Q5_1: four blocks (128 weights) at once.

Prepared group, 192 bytes: int8 x of the low nibbles [64], of the high nibbles [64], scales f32[4],
what offsets or mins multiply f32[4] (-offset * sum, or scale * sum). Four dwords of a dot product
belong to one block, hence four lanes to one scale.

Decision: vectors of 64 bytes are few and loads are many, so scales are multiplied four at a time
and spread after that, and offsets go to a sum of their own (`side`) instead of 64 bytes per group.
"""

from functools import partial

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.compute.cpu.kernels import few_rows
from engine.compute.cpu.kernels.inputs import int32x16, largest32, steps
from engine.compute.cpu.kernels.row_groups import RowGroup, ending
from engine.native.simd import (
    FEATURES,
    I1,
    I8,
    I16,
    I32,
    I64,
    LEVEL,
    call,
    callee,
    callee_out_of_line,
    const,
    dot_u7i8,
    f16_to_f32_ir,
    f32x4,
    f32x8,
    fma,
    i32_to_i8,
    ir_type,
    join,
    load_f32x4,
    load_i8x64,
    load_ir,
    shuf,
    shuffle,
    store_f32,
    store_i8x16,
    sum_i32,
    to_f32,
    u8x16,
    u8x64,
    u16x32,
    zero_i8x16,
    zero_i32x16,
)

_BYTE_PERMUTE = LEVEL == "avx512" and "avx512vbmi" in FEATURES


class _FourBlocks:
    """Emits what four consecutive blocks of n_bytes each hold, at offsets within the block."""

    def __init__(self, n_bytes):
        self.n_bytes, self.total = n_bytes, 4 * n_bytes
        self.rest = 16 if self.total - 64 <= 16 else 32  # bytes of the second load

    def _loaded(self, b, p):
        """Emit the first 64 bytes, and the last 16 or 32 widened to 64."""
        last = load_ir(b, p, ir.VectorType(I8, self.rest), self.total - self.rest)
        return load_ir(b, p, ir_type(u8x64)), shuf(
            b, last, last, [i % self.rest for i in range(64)]
        )

    def _index(self, byte):
        """Index of a byte in what _loaded gives, joined."""
        return byte if byte < 64 else 64 + byte - (self.total - self.rest)

    def nibbles(self, b, p, at):
        """Emit the 16 bytes of nibbles of each block: <64 x i8>."""
        if _BYTE_PERMUTE:
            bytes_ = [i * self.n_bytes + at + j for i in range(4) for j in range(16)]
            return shuf(b, *self._loaded(b, p), [self._index(byte) for byte in bytes_])
        q = [load_ir(b, p, ir_type(u8x16), i * self.n_bytes + at) for i in range(4)]
        return join(b, join(b, q[0], q[1]), join(b, q[2], q[3]))

    def words(self, b, p, offsets):
        """Emit the 16-bit words at each of the offsets, of each block: <4 * n x i16>."""
        places = [i * self.n_bytes + at for at in offsets for i in range(4)]
        if _BYTE_PERMUTE:
            loaded = [b.bitcast(z, ir_type(u16x32)) for z in self._loaded(b, p)]
            return shuf(b, *loaded, [self._index(byte) // 2 for byte in places])
        v = ir.Constant(ir.VectorType(I16, len(places)), None)
        for lane, byte in enumerate(places):
            v = b.insert_element(v, load_ir(b, p, I16, byte), I32(lane))
        return v

    def fifth_bits(self, b, p, at, upper):
        """Emit 16 or 0 for each low nibble (or upper one) from each block's 32 bits at `at`."""
        found = ir.Constant(I64, 0)
        for i in (0, 2):  # two blocks: the wanted 16 bits of each, side by side
            q0, q1 = (load_ir(b, p, I32, (i + k) * self.n_bytes + at) for k in (0, 1))
            both = b.or_(b.zext(q0, I64), b.shl(b.zext(q1, I64), I64(32)))
            found = b.or_(found, b.shl(_extract16(b, both, 16 * upper), I64(16 * i)))
        bits = b.bitcast(found, ir.VectorType(I1, 64))
        return b.select(bits, const(u8x64, 16), const(u8x64, 0))


def _extract16(b, x, first):
    """Emit bits [first, first + 16) of each half of a 64-bit x, side by side in 32 bits."""
    if "bmi2" in FEATURES:
        return call(b, "llvm.x86.bmi.pext.64", I64, [x, I64(0x0000FFFF0000FFFF << first)])
    low = b.and_(b.lshr(x, I64(first)), I64(0xFFFF))
    return b.or_(low, b.shl(b.and_(b.lshr(x, I64(32 + first)), I64(0xFFFF)), I64(16)))


def _emit_quants(four, nibbles_at, fifth_at, upper):
    def emit(context, b, sig, a):
        q = four.nibbles(b, a[0], nibbles_at)
        if upper:
            q = b.bitcast(b.lshr(b.bitcast(q, ir_type(u16x32)), const(u16x32, 4)), ir_type(u8x64))
        q = b.and_(q, const(u8x64, 15))
        return q if fifth_at is None else b.or_(q, four.fifth_bits(b, a[0], fifth_at, upper))

    @intrinsic
    def quants(typing, p):
        return u8x64(types.int64), emit

    return quants


def _scales_and_mins(four, offsets):
    """Make halves(p): two halves of each block, first the four at offsets[0] -> f32x8."""

    @intrinsic
    def halves(typing, p):
        def emit(context, b, sig, a):
            return f16_to_f32_ir(b, four.words(b, a[0], offsets))

        return f32x8(types.int64), emit

    return halves


first4, last4 = shuffle(f32x8, range(4)), shuffle(f32x8, range(4, 8))
four_lanes_each = shuffle(f32x4, [i // 4 for i in range(16)])


def _preparer(offset):
    """Make prepare(); offset 0 means a format with mins."""

    @callee_out_of_line
    def prepare(x, n, out):
        n_blocks = n // 32
        for g in range((n_blocks + 3) // 4):
            first = min(4 * g, n_blocks - 4)
            for i in range(4):
                low = high = zero_i8x16()
                scale = total = np.float32(0)
                if first + i >= 4 * g:
                    block = x + (first + i) * 128
                    scale, inverse = steps(largest32(block))
                    a, b = int32x16(block, inverse), int32x16(block + 64, inverse)
                    low, high = i32_to_i8(a), i32_to_i8(b)
                    total = np.float32(sum_i32(a + b))
                store_i8x16(out + i * 16, low)
                store_i8x16(out + 64 + i * 16, high)
                store_f32(out + 128 + i * 4, scale)
                store_f32(out + 144 + i * 4, total * (-np.float32(offset) if offset else scale))
            out += 192

    return prepare


def _make(n_bytes, offset, nibbles_at, fifth_at):
    """Make the row group of one format; fifth_at None means that there are no fifth bits."""
    four = _FourBlocks(n_bytes)
    low, high = (_emit_quants(four, nibbles_at, fifth_at, upper) for upper in (0, 1))
    halves = _scales_and_mins(four, (0, 0) if offset else (0, 2))

    @callee
    def group(p, px, acc, side):
        s = dot_u7i8(zero_i32x16(), low(p), load_i8x64(px))
        s = dot_u7i8(s, high(p), load_i8x64(px + 64))
        h = halves(p)
        d = first4(h, h) * load_f32x4(px + 128)
        side = fma(d if offset else last4(h, h), load_f32x4(px + 144), side)
        return fma(to_f32(s), four_lanes_each(d, d), acc), side

    total = 4 * n_bytes
    made = RowGroup(128, total, 192, 512, 4096, _preparer(offset), group, ending(group, total))
    return made._replace(few=partial(few_rows.make, four, nibbles_at, fifth_at, offset, made))


def row_group(name):
    """Return the row group of a format."""
    n_bytes, offset, nibbles_at, fifth_at = {
        "q4_0": (18, 8, 2, None),
        "q4_1": (20, 0, 4, None),
        "q5_0": (22, 16, 6, 2),
        "q5_1": (24, 0, 8, 4),
    }[name]
    return _make(n_bytes, offset, nibbles_at, fifth_at)
