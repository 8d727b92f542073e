"""A few input rows times blocks of nibbles with 512-bit dots: two weight rows by four inputs.

Sixteen blocks of a weight row (512 weights) are taken at once, one to a lane: four vectors hold
the four dwords of their nibbles, so that eight dot products leave one sum per block, and scales
cost a fourth of what they do where a block has four lanes. Prepared input of 512 values, 640 bytes:
int8 x in eight vectors (dword k of the low nibbles for k = 0..3, then of the high ones), scales
f32[16], and what offset or mins multiply f32[16]. Block 4i + j is in lane 4j + i. What is left of
a row goes by the groups of `rows_nibble`.

Decision: two weight rows are prefetched as the one stretch of memory that they are, into the second
level of the cache. Row by row, or into the first level, which has too few slots for lines under
way, a matrix that comes from memory takes a third to three quarters longer. 1.1B Q4_0, two cores:
four streams 2.8 times the tokens of one, sixteen 3.8 times; one weight row at a time gave 2.0.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.compute.cpu.kernels.inputs import int32x16, largest32, steps
from engine.compute.cpu.kernels.row_groups import FewRows, result
from engine.compute.cpu.signatures import WIDE_DOT_TYPES, has_wide_dots
from engine.native.simd import (
    I16,
    I32,
    I64,
    Tile,
    call,
    callee,
    callee_out_of_line,
    const,
    dot_ir,
    f16_to_f32_ir,
    f32x16,
    fma_ir,
    half,
    i32_to_i8,
    i32x16,
    ir_type,
    load_f32,
    load_i32,
    load_ir,
    prefetch_l2,
    ptr,
    shuf,
    stack,
    store_f32,
    store_i8x16,
    store_i32,
    sum_f32,
    sum_i32,
    u8x64,
    u16x32,
    zero_f32x4,
    zero_f32x16,
)

IS_BUILT_IN = has_wide_dots(WIDE_DOT_TYPES[0])
WEIGHT_ROWS, INPUTS = 2, 4
VALUES, PREPARED = 512, 640
AHEAD = 12288  # bytes that weights are prefetched before use

_DWORDS, _FLOATS = ir_type(i32x16), ir_type(f32x16)
_SUMS = Tile(f32x16, WEIGHT_ROWS * INPUTS)


class _SixteenBlocks:
    """Emits what 16 consecutive blocks of n_bytes hold, at offsets within the block."""

    def __init__(self, four, nibbles_at, fifth_at, has_min):
        self.four, self.n_bytes = four, four.n_bytes
        self.nibbles_at, self.fifth_at, self.has_min = nibbles_at, fifth_at, has_min

    def dwords(self, b, p):
        """Emit dword k of the nibbles of each block, for k = 0..3."""
        pairs = self._pairs_of_loads(b, p) if self.n_bytes <= 18 else self._pairs(b, p)
        pairs = [b.bitcast(q, ir.VectorType(I64, 8)) for q in pairs]
        low = [lane for i in range(0, 8, 2) for lane in (i, i + 8)]
        high = [lane + 1 for lane in low]
        found = [shuf(b, pairs[k], pairs[k + 2], lanes) for k in (0, 1) for lanes in (low, high)]
        return [b.bitcast(q, ir_type(u8x64)) for q in found]

    def _pairs_of_loads(self, b, p):
        """Emit two dwords of blocks 0..7, the other two, and those of blocks 8..15.

        64 bytes from a block's start on reach to the second dword of the fourth block.
        """
        pairs = []
        for first in (0, 2):
            for k in (0, 8):
                lanes = [
                    64 * i + j * self.n_bytes + self.nibbles_at + 4 * dword + byte
                    for j in range(4)
                    for dword in (0, 1)
                    for i in (0, 1)
                    for byte in range(4)
                ]
                at = [(first + i) * self.four.total + k for i in (0, 1)]
                pairs.append(shuf(b, *(load_ir(b, p, ir_type(u8x64), x) for x in at), lanes))
        return pairs

    def _halves_of_loads(self, b, p):
        words = []
        for first in (0, 2):
            lanes = [32 * i + j * self.n_bytes // 2 for j in range(4) for i in (0, 1, 0, 1)]
            at = [(first + i) * self.four.total for i in (0, 1)]
            words.append(shuf(b, *(load_ir(b, p, ir_type(u16x32), x) for x in at), lanes))
        mixed = [lane + 16 * (lane % 4 > 1) for lane in range(16)]
        return f16_to_f32_ir(b, shuf(b, *words, mixed))

    def _pairs(self, b, p):
        """Emit the same from the nibbles of four blocks at a time."""
        places = [b.add(p, I64(i * self.four.total)) for i in range(4)]
        q = [b.bitcast(self.four.nibbles(b, at, self.nibbles_at), _DWORDS) for at in places]
        low = [lane + k for lane in range(0, 16, 4) for k in (0, 16, 1, 17)]
        high = [lane + 2 for lane in low]
        return [shuf(b, q[i], q[i + 1], lanes) for i in (0, 2) for lanes in (low, high)]

    def halves(self, b, p, at):
        """Emit a half of each block as a float."""
        if self.n_bytes <= 18:
            return self._halves_of_loads(b, p)
        found = ir.Constant(ir.VectorType(I64, 4), None)
        for j in range(4):
            packed = I64(0)  # in general registers: those have time to spare
            for i in range(4):
                word = load_ir(b, p, I16, (4 * i + j) * self.n_bytes + at)
                packed = b.or_(packed, b.shl(b.zext(word, I64), I64(16 * i)))
            found = b.insert_element(found, packed, I32(j))
        return f16_to_f32_ir(b, b.bitcast(found, ir.VectorType(I16, 16)))

    def fifth_bits(self, b, p):
        """Emit the 32 fifth bits of each block, or None."""
        if self.fifth_at is None:
            return None
        bits = ir.Constant(_DWORDS, ir.Undefined)
        for lane in range(16):
            block = 4 * (lane % 4) + lane // 4
            word = load_ir(b, p, I32, block * self.n_bytes + self.fifth_at)
            bits = b.insert_element(bits, word, I32(lane))
        return bits

    def codes(self, b, dwords, bits, upper, k):
        """Emit the codes in the low (or upper) nibbles of vector k: four values of each block."""
        q = dwords[k]
        if upper:
            q = b.bitcast(b.lshr(b.bitcast(q, ir_type(u16x32)), const(u16x32, 4)), ir_type(u8x64))
        q = b.and_(q, const(u8x64, 15))
        if bits is None:
            return q
        # Four bits to the fifth bits of four bytes, by a table of 16 dwords.
        table = [sum(16 << 8 * i for i in range(4) if n >> i & 1) for n in range(16)]
        index = b.lshr(bits, const(i32x16, 16 * upper + 4 * k))
        fifth = _looked_up_ir(b, const(i32x16, table), index)
        return b.or_(q, b.bitcast(fifth, ir_type(u8x64)))


def _looked_up_ir(b, table, index):
    """Emit the dwords of a table of 16 that the low four bits of the index choose."""
    return call(b, "llvm.x86.avx512.permvar.si.512", _DWORDS, [table, index])


def _block(sixteen):
    """Make block(sums, p, row_bytes, px, px_bytes): add 512 weights of two rows by four inputs."""

    @intrinsic
    def block(typing, sums, p, row_bytes, px, px_bytes):
        def emit(context, b, sig, a):
            sums, p, row_bytes, px, px_bytes = a
            rows = [b.add(p, b.mul(row_bytes, I64(r))) for r in range(WEIGHT_ROWS)]
            xs = [b.add(px, b.mul(px_bytes, I64(c))) for c in range(INPUTS)]
            dwords = [sixteen.dwords(b, row) for row in rows]
            bits = [sixteen.fifth_bits(b, row) for row in rows]
            dots = [[ir.Constant(_DWORDS, None)] * INPUTS for _ in rows]
            for i in range(8):
                found = zip(dwords, bits, strict=True)
                codes = [sixteen.codes(b, q, fifth, i // 4, i % 4) for q, fifth in found]
                for c, at in enumerate(xs):
                    x = load_ir(b, at, ir_type(u8x64), 64 * i)
                    for r, q in enumerate(codes):
                        dots[r][c] = dot_ir(b, dots[r][c], q, x, "u7")
            return _added_ir(b, sixteen, sums, rows, xs, dots)

        return _SUMS(_SUMS, *[types.int64] * 4), emit

    return block


def _added_ir(b, sixteen, sums, rows, xs, dots):
    """Emit the sums with the dots, scaled."""
    d = [sixteen.halves(b, row, 0) for row in rows]
    m = [sixteen.halves(b, row, 2) for row in rows] if sixteen.has_min else None
    for c, x in enumerate(xs):
        scale, side = load_ir(b, x, _FLOATS, 512), load_ir(b, x, _FLOATS, 576)
        for r in range(WEIGHT_ROWS):
            at = r * INPUTS + c
            s, total = b.sitofp(dots[r][c], _FLOATS), b.extract_value(sums, at)
            if m is None:
                s = fma_ir(b, s, scale, side)
            else:
                s, total = b.fmul(s, scale), fma_ir(b, m[r], side, total)
            sums = b.insert_value(sums, fma_ir(b, s, d[r], total), at)
    return sums


@intrinsic
def _zero_sums(typing):
    return _SUMS(), lambda context, b, sig, a: ir.Constant(ir_type(_SUMS), None)


@intrinsic
def _store_sums(typing, sums, out):
    """Store the totals of the eight vectors, f32[INPUTS][WEIGHT_ROWS]."""

    def emit(context, b, sig, a):
        order = [r * INPUTS + c for c in range(INPUTS) for r in range(WEIGHT_ROWS)]
        v = [b.extract_value(a[0], i) for i in order]
        v = [b.fadd(half(b, x, 0), half(b, x, 1)) for x in v]
        while len(v) > 1:
            pairs = zip(v[0::2], v[1::2], strict=True)
            v = [b.fadd(*(shuf(b, *xy, range(odd, 16, 2)) for odd in (0, 1))) for xy in pairs]
        b.store(v[0], ptr(b, a[1], v[0].type), align=4)
        return context.get_dummy_value()

    return types.void(_SUMS, types.int64), emit


def _preparer(prepare_fours, offset):
    """Make prepare(): 16 blocks at a time, then four. Offset 0 means a format with mins."""
    factor, room = -np.float32(offset) if offset else np.float32(1), stack(64)

    @callee_out_of_line
    def prepare(x, n, out):
        codes = room()
        while n >= VALUES:
            for block in range(16):
                lane = 4 * (block % 4) + block // 4
                scale, inverse = steps(largest32(x))
                low, high = int32x16(x, inverse), int32x16(x + 64, inverse)
                store_i8x16(codes, i32_to_i8(low))
                store_i8x16(codes + 16, i32_to_i8(high))
                for i in range(8):
                    store_i32(out + 64 * i + 4 * lane, load_i32(codes + 4 * i))
                store_f32(out + 512 + 4 * lane, scale)
                store_f32(out + 576 + 4 * lane, np.float32(sum_i32(low + high)) * scale * factor)
                x += 128
            n, out = n - VALUES, out + PREPARED
        if n:
            prepare_fours(x, n, out)

    return prepare


def _rest(four, group, tail):
    """Make rest(end, px, left): the last left < 512 values of a weight row times prepared ones."""
    values, total, n_bytes = 128, four.total, four.n_bytes

    @callee_out_of_line
    def rest(end, px, left):
        acc, side = zero_f32x16(), zero_f32x4()
        p = end - left // 32 * n_bytes
        for i in range(left // values):
            acc, side = group(p + i * total, px + i * 192, acc, side)
        if left % values:
            acc, side = tail(end, px + left // values * 192, left % values, acc, side)
        return sum_f32(acc) + sum_f32(side)

    return rest


def make(four, nibbles_at, fifth_at, offset, row_group, plain):
    """Return the FewRows of a format; `plain` where this level has no better way.

    `four` emits what four blocks hold, `row_group` works on those, and so does `plain`.
    """
    if not IS_BUILT_IN:
        return plain
    plain_rows = plain.rows
    block = _block(_SixteenBlocks(four, nibbles_at, fifth_at, not offset))
    rest = _rest(four, row_group.group, row_group.tail)
    n_bytes, room = 4 * four.total, stack(64)

    @callee
    def prepared_bytes(n_in):
        return n_in // VALUES * PREPARED + (n_in % VALUES + 127) // 128 * 192

    @callee_out_of_line
    def rows(w, row_bytes, r0, r1, n_in, px, px_bytes, n, spare, bias, add, y, ldy):
        if n_in < 128:  # its one group would begin before the row
            plain_rows(w, row_bytes, r0, r1, n_in, px, px_bytes, n, spare, bias, add, y, ldy)
            return
        n_groups, left, totals = n_in // VALUES, n_in % VALUES, room()
        for r in range(r0, r1, WEIGHT_ROWS):
            p, n_rows = w + r * row_bytes, min(WEIGHT_ROWS, r1 - r)
            stride, sums = row_bytes if n_rows > 1 else 0, _zero_sums()
            for g in range(n_groups):
                ahead = p + AHEAD + g * WEIGHT_ROWS * n_bytes
                for i in range(0, WEIGHT_ROWS * n_bytes, 64):
                    prefetch_l2(ahead + i)
                sums = block(sums, p + g * n_bytes, stride, px + g * PREPARED, px_bytes)
            _store_sums(sums, totals)
            if left or bias or n_rows < WEIGHT_ROWS:
                for i in range(n_rows):
                    for c in range(n):
                        s = load_f32(totals + 4 * (c * WEIGHT_ROWS + i))
                        if left:
                            x = px + c * px_bytes + n_groups * PREPARED
                            s += rest(p + (i + 1) * row_bytes, x, left)
                        result(y + c * ldy + 4 * (r + i), s, bias, r + i, add)
            else:
                at = y + 4 * r
                for i in range(totals, totals + 8 * n, 8):
                    s, t = load_f32(i), load_f32(i + 4)
                    if add:
                        s, t = s + load_f32(at), t + load_f32(at + 4)
                    store_f32(at, s)
                    store_f32(at + 4, t)
                    at += ldy

    return FewRows(_preparer(row_group.prepare, offset), prepared_bytes, rows)
