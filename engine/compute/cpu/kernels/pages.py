"""Pages of 32 cells: which cells a row may see, and copies of whole pages."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.compute.cpu.kernels.words import indices, word
from engine.native.simd import (
    I64,
    callee,
    i32x16,
    ir_type,
    load_i32,
    load_i64,
    load_ir,
    load_u8,
    load_u8x64,
    splat_ir,
    store_u8,
    store_u8x64,
)

COPY = indices("pointwise/copy_pages")
ALL_CELLS = 0xFFFFFFFF


def seen_ir(b, positions, low, span):
    """Emit the mask of 16 cells with low <= position <= low + span.

    One unsigned compare; the -1 of an empty cell wraps to a huge number, since low >= 0.
    """
    return b.icmp_unsigned("<=", b.sub(positions, low), span)


@intrinsic
def seen_cells(typing, positions, low, span):
    """Bits of a page's 32 cells whose position is in [low, low + span]; positions is an address."""

    def emit(context, b, sig, a):
        low, span = (splat_ir(b, x, 16) for x in a[1:])
        bits = I64(0)
        for i in (1, 0):
            mask = seen_ir(b, load_ir(b, a[0], ir_type(i32x16), 64 * i), low, span)
            sixteen = b.zext(b.bitcast(mask, ir.IntType(16)), I64)
            bits = b.or_(b.shl(bits, I64(16)), sixteen)
        return bits

    return types.int64(types.int64, types.int32, types.int32), emit


@callee
def copy_bytes(source, target, n):
    """Copy n bytes between places that do not overlap."""
    whole = n // 64 * 64
    for i in range(0, whole, 64):
        store_u8x64(target + i, load_u8x64(source + i))
    for i in range(whole, n):
        store_u8(target + i, load_u8(source + i))


def copy_pages(args, thread, n_threads):
    """Copy pages in every layer, K and V."""
    n_layers = word(args, COPY.n_layers)
    for item in range(thread, word(args, COPY.n_pairs) * n_layers * 2, n_threads):
        pair = word(args, COPY.pairs) + item // (n_layers * 2) * 8
        stored = word(args, COPY.layers) + item % (n_layers * 2) * 16
        base, n_bytes = load_i64(stored), load_i64(stored + 8)
        source, target = load_i32(pair), load_i32(pair + 4)
        copy_bytes(base + source * n_bytes, base + target * n_bytes, n_bytes)
