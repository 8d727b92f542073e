"""What gemv needs of a weight type: a group of weights against a row prepared once per product.

    prepare(x, n, out)              f32[n] at x -> groups of `prepared` bytes each at out
    group(p, px, acc, side)         both sums with the `values` weights at p times the group px
    tail(end, px, left, acc, side)  the same for the last, incomplete group of a row that ends there

The sums acc f32[16] and side f32[4] are totalled at a row's end. `near`: every line is prefetched
that many bytes before use; `page`: so is the first line of each 4096 bytes (0 for neither).

Decision: measured over the memory map of a file, where the hardware prefetcher stops at each small
page and starts again in the next. One line per page in good time wakes it there: Q4_K went from 17
to 24 GB/s per thread, F32 from 23 to 27. More lines help where many small loads hide the stream
(four and five bits, Q8_0) and harm elsewhere: a core has few slots for lines under way.

A ragged quantized row has one more group that ends at the row's end, with zeros for the values
already done: nothing outside the row is read, and no stray scale can turn 0 * inf into NaN.
"""

from collections import namedtuple

from engine.native.simd import callee

RowGroup = namedtuple("RowGroup", "values n_bytes prepared near page prepare group tail")


def ending(group, n_bytes):
    """Make tail() of a format whose last group may reach back into the group before."""

    @callee
    def tail(end, px, left, acc, side):
        return group(end - n_bytes, px, acc, side)

    return tail
