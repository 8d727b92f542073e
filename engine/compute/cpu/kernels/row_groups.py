"""What gemv needs of a weight type: a group of weights against a row prepared once per product.

    prepare(x, n, out)        f32[n] at x -> groups of `prepared` bytes each at out
    group(p, px, acc)         acc + the `values` weights at p times the prepared group px
    tail(end, px, left, acc)  the same for the last, incomplete group of a row that ends at `end`

A ragged quantized row has one more group that ends at the row's end, with zeros for the values
already done: nothing outside the row is read, and no stray scale can turn 0 * inf into NaN.
"""

from collections import namedtuple

from engine.native.simd import callee

RowGroup = namedtuple("RowGroup", "values n_bytes prepared prepare group tail")


def ending(group, n_bytes):
    """Make tail() of a format whose last group may reach back into the group before."""

    @callee
    def tail(end, px, left, acc):
        return group(end - n_bytes, px, acc)

    return tail
