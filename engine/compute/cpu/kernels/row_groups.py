"""What gemv needs of a weight type: a group of weights against a row prepared once per product.

    prepare(x, n, out)              f32[n] at x -> groups of `prepared` bytes each at out
    group(p, px, acc, side)         both sums with the `values` weights at p times the group px
    tail(end, px, left, acc, side)  the same for the last, incomplete group of a row that ends there

The sums acc f32[16] and side f32[4] are totalled at a row's end. `ahead`: weights are prefetched
that many bytes before use; 0 leaves it to the hardware, which does better where a core takes more
than about 25 bytes per nanosecond.

A ragged quantized row has one more group that ends at the row's end, with zeros for the values
already done: nothing outside the row is read, and no stray scale can turn 0 * inf into NaN.
"""

from collections import namedtuple

from engine.native.simd import callee

RowGroup = namedtuple("RowGroup", "values n_bytes prepared ahead prepare group tail")


def ending(group, n_bytes):
    """Make tail() of a format whose last group may reach back into the group before."""

    @callee
    def tail(end, px, left, acc, side):
        return group(end - n_bytes, px, acc, side)

    return tail
