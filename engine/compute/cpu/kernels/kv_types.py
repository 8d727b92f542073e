"""KV_TYPES: how K and V lie in their pages, one row per type of the cache.

K of 16 cells is laid out by blocks of `block` dimensions, the cells side by side; V of a cell by
blocks of `columns` columns. `block_bytes` and `columns_bytes` are what one cell takes of each.
"""

from dataclasses import dataclass

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.compute.cpu.kernels.kv_blocks import BLOCK_TYPES
from engine.compute.cpu.kernels.rows import load_upto
from engine.native.simd import (
    I32,
    I64,
    bf16_to_f32_ir,
    callee,
    const,
    f16_to_f32_ir,
    f32_to_f16_ir,
    f32x16,
    i16x16,
    i32x16,
    ir_type,
    load_ir,
    ptr,
)


def _f32_to_bf16_ir(b, x):
    """Emit <16 x float> -> <16 x i16> of bfloat16, nearest even; NaN stays NaN."""
    u = b.bitcast(x, ir_type(i32x16))
    odd = b.and_(b.lshr(u, const(i32x16, 16)), const(i32x16, 1))
    rounded = b.add(u, b.add(odd, const(i32x16, 0x7FFF)))
    kept = b.select(b.fcmp_unordered("uno", x, x), b.or_(u, const(i32x16, 1 << 22)), rounded)
    return b.trunc(b.lshr(kept, const(i32x16, 16)), ir_type(i16x16))


@dataclass(frozen=True)
class FloatType:
    """Elements of n_bytes each, stored as `stored`; decode and encode emit 16 lanes of them."""

    n_bytes: int
    stored: ir.Type
    decode: object
    encode: object

    block, columns, is_rotated = 4, 16, False

    @property
    def block_bytes(self):
        return self.block * self.n_bytes

    @property
    def columns_bytes(self):
        return self.columns * self.n_bytes

    def keys_ir(self, b, block, i):
        """Emit four dimensions of 16 cells: the whole block."""
        return [self._load_ir(b, block, 16 * self.n_bytes * d) for d in range(4)]

    def values_ir(self, b, addr, n):
        """Emit 16 n columns of a cell."""
        return [self._load_ir(b, addr, 16 * self.n_bytes * i) for i in range(n)]

    def _load_ir(self, b, addr, offset):
        return self.decode(b, load_ir(b, addr, self.stored, offset))

    def make_fill_key(self):
        """Make fill_key(x, n, half, cell): n floats at x into one of 16 cells."""
        n_bytes, spread = self.n_bytes, self._storer(16 * self.n_bytes)

        @callee
        def fill_key(x, n, half, cell):
            column = half + cell * n_bytes
            for d in range(0, n, 16):
                spread(column + d * 16 * n_bytes, load_upto(x + 4 * d, n - d))

        return fill_key

    def make_fill_value(self):
        """Make fill_value(x, n, row): n floats at x into a cell's row."""
        n_bytes, write = self.n_bytes, self._storer(self.n_bytes)

        @callee
        def fill_value(x, n, row):
            for d in range(0, n, 16):
                write(row + d * n_bytes, load_upto(x + 4 * d, n - d))

        return fill_value

    def _storer(self, stride):
        """Make store(addr, v): lane i at addr + i * stride bytes."""
        kv = self

        @intrinsic
        def store(typing, addr, v):
            def emit(context, b, sig, a):
                stored = kv.encode(b, a[1])
                if stride == kv.n_bytes:
                    b.store(stored, ptr(b, a[0], kv.stored), align=1)
                else:
                    for i in range(16):
                        at = ptr(b, b.add(a[0], I64(i * stride)), kv.stored.element)
                        b.store(b.extract_element(stored, I32(i)), at, align=1)
                return context.get_dummy_value()

            return types.void(types.int64, f32x16), emit

        return store


_HALVES = ir_type(i16x16)
KV_TYPES = {
    "f32": FloatType(4, ir_type(f32x16), lambda b, x: x, lambda b, x: x),
    "f16": FloatType(2, _HALVES, f16_to_f32_ir, f32_to_f16_ir),
    "bf16": FloatType(2, _HALVES, bf16_to_f32_ir, _f32_to_bf16_ir),
    **BLOCK_TYPES,
}


def unpacker(kv):
    """Make unpack(half, size, out): K of 16 cells as f32 [size][16] at out."""
    block, block_bytes = kv.block, 16 * kv.block_bytes

    @intrinsic
    def unpack_four(typing, at, i, out):
        def emit(context, b, sig, a):
            for d, v in enumerate(kv.keys_ir(b, a[0], a[1])):
                b.store(v, ptr(b, b.add(a[2], I64(64 * d)), v.type), align=4)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), emit

    @callee
    def unpack(half, size, out):
        for d in range(0, size, 4):
            unpack_four(half + d // block * block_bytes, d % block // 4, out + d * 64)

    return unpack
