"""Row groups of F32, F16 and BF16: 64 weights at once against an f32 row of any length."""

from engine.compute.cpu.kernels.row_groups import RowGroup
from engine.compute.cpu.kernels.rows import load_upto
from engine.native.simd import (
    callee,
    callee_out_of_line,
    first_lane,
    fma,
    load_bf16,
    load_bf16x16,
    load_f16,
    load_f16x16,
    load_f32,
    load_f32x16,
    store_f32x16,
)


@callee_out_of_line
def prepare(x, n, out):
    """Copy the row; zeros follow it up to a multiple of 64."""
    for i in range(0, (n + 63) // 64 * 64, 16):
        store_f32x16(out + 4 * i, load_upto(x + 4 * i, max(n - i, 0)))


LOADS = {"f32": (4, load_f32x16, load_f32), "f16": (2, load_f16x16, load_f16)}
LOADS["bf16"] = (2, load_bf16x16, load_bf16)


def row_group(name):
    """Return the row group of a float type."""
    n_bytes, load16, load1 = LOADS[name]

    @callee
    def times(p, px, i):
        return load16(p + 16 * n_bytes * i) * load_f32x16(px + 64 * i)

    @callee
    def group(p, px, acc, side):
        # Two short chains: one long one would wait for each multiply-add in turn.
        a = fma(load16(p + 16 * n_bytes), load_f32x16(px + 64), times(p, px, 0))
        b = fma(load16(p + 48 * n_bytes), load_f32x16(px + 192), times(p, px, 2))
        return acc + (a + b), side

    @callee
    def tail(end, px, left, acc, side):
        p = end - left * n_bytes
        whole = left // 16 * 16
        for i in range(0, whole, 16):
            acc = fma(load16(p + i * n_bytes), load_f32x16(px + 4 * i), acc)
        s = load_f32(px) * 0
        for i in range(whole, left):
            s += load1(p + i * n_bytes) * load_f32(px + 4 * i)
        return acc + first_lane(s), side

    return RowGroup(64, 64 * n_bytes, 256, 0, 4096, prepare, group, tail)
