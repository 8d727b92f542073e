"""BLOCK_TYPES: the quantized rows of KV_TYPES: 32 values share a scale, as in model files.

A cell's block of V is the block of a model file: d f16, [m f16,] [fifth bits u32,] codes. In K
the blocks of 16 cells lie interleaved: d f16[16], [m f16[16],] [fifth bits u32[16],] codes, 16
bytes for each dimension, or for each two dimensions where a code is a nibble (the even one low).
A value is d * code + m, m being -offset * d where the type has no minimum. What is stored is
rotated where heads are long enough: see `hadamard`.
"""

from dataclasses import dataclass

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.compute.cpu.kernels import kv_quantize
from engine.native.simd import (
    FEATURES,
    I8,
    I16,
    I32,
    I64,
    IS_X86,
    LEVEL,
    call,
    callee,
    const,
    f16_to_f32_ir,
    f32_to_f16_ir,
    f32x16,
    fma_ir,
    i8x16,
    i16x16,
    i32x16,
    ir_type,
    load_f32,
    load_ir,
    load_u8,
    ptr,
    splat_ir,
    stack,
    store_u8,
    store_u32,
    u8x16,
)

_FLOATS, _INTS = ir_type(f32x16), ir_type(i32x16)


@dataclass(frozen=True)
class BlockType:
    """A quantized type. `bits` of a code are 4, 5 or 8; `table` maps codes that are indices."""

    bits: int
    encode: object  # encode(x, codes): 32 floats at x -> u8[32], then d and m as f32
    has_min: bool = False
    offset: int = 0
    table: tuple = ()

    block, columns, is_rotated = 32, 32, True

    @property
    def fifth_at(self):
        """Offset of the fifth bits in a cell's block, which is that of the codes without any."""
        return 4 if self.has_min else 2

    @property
    def codes_at(self):
        return self.fifth_at + (4 if self.bits == 5 else 0)

    @property
    def block_bytes(self):
        return self.codes_at + (32 if self.bits == 8 else 16)

    columns_bytes = block_bytes

    # ---- to floats

    def keys_ir(self, b, block, i):
        """Emit the dimensions 4i .. 4i + 3 of a block, of 16 cells."""
        d = f16_to_f32_ir(b, load_ir(b, block, ir_type(i16x16)))
        m = f16_to_f32_ir(b, load_ir(b, block, ir_type(i16x16), 32)) if self.has_min else None
        step = 64 if self.bits == 8 else 32
        codes = b.add(block, b.mul(i, I64(step)))
        at = 16 * self.codes_at
        if self.bits == 8:
            found = [load_ir(b, codes, ir_type(i8x16), at + 16 * k) for k in range(4)]
            return [self._value_ir(b, self._widened_ir(b, q), d, m) for q in found]
        bits = None
        if self.bits == 5:
            bits = load_ir(b, block, _INTS, 16 * self.fifth_at)
            bits = b.lshr(bits, splat_ir(b, b.trunc(b.mul(i, I64(4)), I32), 16))
        keys = []
        for k in range(4):
            q = load_ir(b, codes, ir_type(u8x16), at + 16 * (k // 2))
            code = self._widened_ir(b, _nibbles_ir(b, q, k % 2))
            if bits is not None:
                bit = b.and_(b.shl(bits, const(i32x16, 4 - k)), const(i32x16, 16))
                code = b.or_(code, bit)
            keys.append(self._value_ir(b, code, d, m))
        return keys

    def values_ir(self, b, addr, n):
        """Emit 16 n columns of a cell, n even."""
        values = []
        for j in range(n // 2):
            block = b.add(addr, I64(j * self.block_bytes))
            d = _splat_half_ir(b, block, 0)
            m = _splat_half_ir(b, block, 2) if self.has_min else None
            for k in range(2):
                values.append(self._value_ir(b, self._columns_ir(b, block, k), d, m))
        return values

    def _columns_ir(self, b, block, k):
        """Emit the codes of half k of a cell's block."""
        if self.bits == 8:
            return self._widened_ir(b, load_ir(b, block, ir_type(i8x16), self.codes_at + 16 * k))
        q = load_ir(b, block, ir_type(u8x16), self.codes_at)
        code = self._widened_ir(b, _nibbles_ir(b, q, k))
        if self.bits == 5:
            bits = splat_ir(b, load_ir(b, block, I32, self.fifth_at), 16)
            # As signed numbers, of which the last one is the sign bit.
            masks = const(i32x16, [_signed(1 << (16 * k + i)) for i in range(16)])
            none = b.icmp_signed("==", b.and_(bits, masks), const(i32x16, 0))
            code = b.or_(code, b.select(none, const(i32x16, 0), const(i32x16, 16)))
        return code

    def _widened_ir(self, b, q):
        """Emit <16 x i8> codes -> <16 x i32>, through the table if there is one."""
        if self.table:
            return b.sext(_looked_up_ir(b, q, self.table), _INTS)
        return b.sext(q, _INTS) if self.bits == 8 else b.zext(q, _INTS)

    def _value_ir(self, b, code, d, m):
        x = b.sitofp(code, _FLOATS)
        if m is None and not self.offset:
            return b.fmul(x, d)
        if m is None:
            m = b.fmul(d, const(f32x16, -float(self.offset)))
        return fma_ir(b, x, d, m)

    # ---- from floats

    def make_fill_key(self):
        """Make fill_key(x, n, half, cell): n floats at x into one of 16 cells."""
        encode, room, fifth_at, codes_at = self.encode, stack(64), self.fifth_at, self.codes_at
        block_bytes, has_min, bits = self.block_bytes, self.has_min, self.bits

        @callee
        def fill_key(x, n, half, cell):
            codes = room()
            for i in range(n // 32):
                encode(x + 128 * i, codes)
                block = half + 16 * block_bytes * i
                store_half(block + 2 * cell, load_f32(codes + 32))
                if has_min:
                    store_half(block + 32 + 2 * cell, load_f32(codes + 36))
                if bits == 5:
                    store_u32(block + 16 * fifth_at + 4 * cell, fifth_bits(codes))
                column = block + 16 * codes_at + cell
                if bits == 8:
                    for j in range(32):
                        store_u8(column + 16 * j, load_u8(codes + j))
                else:
                    for j in range(16):
                        store_u8(column + 16 * j, two_nibbles(codes + 2 * j, 1))

        return fill_key

    def make_fill_value(self):
        """Make fill_value(x, n, row): n floats at x into a cell's row."""
        encode, room, fifth_at, codes_at = self.encode, stack(64), self.fifth_at, self.codes_at
        block_bytes, has_min, bits = self.block_bytes, self.has_min, self.bits

        @callee
        def fill_value(x, n, row):
            codes = room()
            for i in range(n // 32):
                encode(x + 128 * i, codes)
                block = row + block_bytes * i
                store_half(block, load_f32(codes + 32))
                if has_min:
                    store_half(block + 2, load_f32(codes + 36))
                if bits == 5:
                    store_u32(block + fifth_at, fifth_bits(codes))
                for j in range(32 if bits == 8 else 16):
                    code = load_u8(codes + j) if bits == 8 else two_nibbles(codes + j, 16)
                    store_u8(block + codes_at + j, code)

        return fill_value


def _signed(x):
    return x - (1 << 32) if x >> 31 else x


def _nibbles_ir(b, q, upper):
    return b.lshr(q, const(u8x16, 4)) if upper else b.and_(q, const(u8x16, 15))


def _splat_half_ir(b, addr, offset):
    return f16_to_f32_ir(b, splat_ir(b, load_ir(b, addr, I16, offset), 16))


def _looked_up_ir(b, index, table):
    """Emit table[index] of 16 indices below 16, each value a signed byte."""
    values = const(i8x16, list(table))
    if IS_X86 and (LEVEL != "generic" or "ssse3" in FEATURES):
        return call(b, "llvm.x86.ssse3.pshuf.b.128", ir.VectorType(I8, 16), [values, index])
    if LEVEL == "neon":
        return call(b, "llvm.aarch64.neon.tbl1.v16i8", ir.VectorType(I8, 16), [values, index])
    found = const(i8x16, table[0])
    for i, value in enumerate(table[1:], 1):
        is_reached = b.icmp_unsigned(">=", index, const(u8x16, i))
        found = b.select(is_reached, const(i8x16, value), found)
    return found


@intrinsic
def store_half(typing, addr, x):
    """Store a float32 as a half."""

    def emit(context, b, sig, a):
        v = f32_to_f16_ir(b, splat_ir(b, a[1], 8))
        b.store(b.extract_element(v, I32(0)), ptr(b, a[0], I16), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.float32), emit


@callee
def two_nibbles(codes, apart):
    """The code at an address and the one `apart` bytes on, as nibbles of a byte."""
    low, high = types.int64(load_u8(codes)) & 15, types.int64(load_u8(codes + apart)) & 15
    return types.uint8(low | high << 4)


@callee
def fifth_bits(codes):
    """The fifth bits of 32 codes, bit j of code j."""
    found = types.int64(0)
    for j in range(32):
        found |= (types.int64(load_u8(codes + j)) >> 4 & 1) << j
    return types.uint32(found)


BLOCK_TYPES = {
    "q8_0": BlockType(8, kv_quantize.q8_0),
    "q5_0": BlockType(5, kv_quantize.symmetric(16), offset=16),
    "q5_1": BlockType(5, kv_quantize.with_minimum(31), has_min=True),
    "q4_0": BlockType(4, kv_quantize.symmetric(8), offset=8),
    "q4_1": BlockType(4, kv_quantize.with_minimum(15), has_min=True),
    "iq4_nl": BlockType(4, kv_quantize.iq4_nl, table=kv_quantize.IQ4_VALUES),
}
