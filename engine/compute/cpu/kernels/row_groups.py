"""What gemv needs of a weight type: a group of weights against a row prepared once per product.

    prepare(x, n, out)              f32[n] at x -> groups of `prepared` bytes each at out
    group(p, px, acc, side)         both sums with the `values` weights at p times the group px
    tail(end, px, left, acc, side)  the same for the last, incomplete group of a row that ends there

The sums acc f32[16] and side f32[4] are totalled at a row's end. `near`: every line is prefetched
that many bytes before use; `page`: so is the first line of each 4096 bytes (0 for neither).
`few(plain)`, if there is one, returns a better way with a few input rows than the plain FewRows.

Decision: measured over the memory map of a file, where the hardware prefetcher stops at each small
page and starts again in the next. One line per page in good time wakes it there: Q4_K went from 17
to 24 GB/s per thread, F32 from 23 to 27. More lines help where many small loads hide the stream
(four and five bits, Q8_0) and harm elsewhere: a core has few slots for lines under way.

A ragged quantized row has one more group that ends at the row's end, with zeros for the values
already done: nothing outside the row is read, and no stray scale can turn 0 * inf into NaN.
"""

from collections import namedtuple

from engine.native.simd import callee, load_f32, store_f32

_FIELDS = "values n_bytes prepared near page prepare group tail few"
RowGroup = namedtuple("RowGroup", _FIELDS, defaults=(None,))
# How a few input rows are prepared and multiplied: prepare(x, n, out), prepared_bytes(n), and
# rows(w, row_bytes, r0, r1, n_in, px, px_bytes, n, spare, bias, add, y, ldy) for up to PASS_ROWS
# rows prepared px_bytes apart; it may read the places of all PASS_ROWS, whatever is there.
FewRows = namedtuple("FewRows", "prepare prepared_bytes rows")


@callee
def result(y, s, bias, r, add):
    """y = s + bias[r] (+ y)."""
    if bias:
        s += load_f32(bias + 4 * r)
    store_f32(y, load_f32(y) + s if add else s)


def ending(group, n_bytes):
    """Make tail() of a format whose last group may reach back into the group before."""

    @callee
    def tail(end, px, left, acc, side):
        return group(end - n_bytes, px, acc, side)

    return tail
