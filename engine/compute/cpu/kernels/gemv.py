"""Products of a few rows: weight rows are read once each, straight from the file's layout.

Decision: one weight row at a time in each thread. Two or four interleaved rows halve the memory
bandwidth, because the hardware prefetcher loses the streams.
"""

from engine.compute.cpu.kernels.inputs import input_row
from engine.compute.cpu.kernels.row_groups import FewRows, result
from engine.compute.cpu.kernels.sharing import (
    PASS_ROWS,
    SPARE,
    claimed_rows,
    rows_per_claim,
    spaced,
)
from engine.compute.cpu.kernels.words import count, indices, word
from engine.compute.cpu.signatures import MULTI_ROWS
from engine.native.simd import (
    atomic_add,
    callee,
    callee_out_of_line,
    load_u8,
    prefetch,
    store_u8,
    sum_f32,
    zero_f32x4,
    zero_f32x16,
)

GEMV = indices("matmul/gemv")
PAGE = 4096  # bytes of the smallest page of memory


@callee_out_of_line
def moved_to_end(p, n, buffer, n_buffer):
    """Copy n bytes to the end of a buffer, zeros before; the address of the buffer's end."""
    for i in range(n_buffer):
        store_u8(buffer + i, load_u8(p + i - (n_buffer - n)) if i >= n_buffer - n else 0)
    return buffer + n_buffer


def row_loops(group):
    """Make rows1 and rows4: weight rows [r0, r1) times one or up to four prepared rows."""
    values, n_bytes, prepared, dot, tail = (
        group.values,
        group.n_bytes,
        group.prepared,
        group.group,
        group.tail,
    )
    near, page = group.near, group.page
    is_quantized = values > 64

    @callee
    def prefetch_group(p):
        for i in range(near, near + n_bytes if near else 0, 64):
            prefetch(p + i)
        if (p + page) & (PAGE - 1) < n_bytes:
            prefetch((p + page) & -PAGE)

    @callee
    def row_end(p, row_bytes, n_in, spare):
        """End of a row; a row shorter than one group is moved behind zeros first."""
        if is_quantized and n_in < values:
            return moved_to_end(p, row_bytes, spare, n_bytes)
        return p + row_bytes

    @callee_out_of_line
    def rows1(w, row_bytes, r0, r1, n_in, px, spare, bias, add, y):
        n_groups, left = n_in // values, n_in % values
        for r in range(r0, r1):
            p = w + r * row_bytes
            acc, side = zero_f32x16(), zero_f32x4()
            for g in range(n_groups):
                prefetch_group(p + g * n_bytes)
                acc, side = dot(p + g * n_bytes, px + g * prepared, acc, side)
            if left:
                end, o = row_end(p, row_bytes, n_in, spare), n_groups * prepared
                acc, side = tail(end, px + o, left, acc, side)
            result(y + 4 * r, sum_f32(acc) + sum_f32(side), bias, r, add)

    @callee_out_of_line
    def rows4(w, row_bytes, r0, r1, n_in, xs, n, spare, bias, add, ys):
        n_groups, left = n_in // values, n_in % values
        x0, x1, x2, x3 = xs
        y0, y1, y2, y3 = ys
        for r in range(r0, r1):
            p = w + r * row_bytes
            a0 = a1 = a2 = a3 = zero_f32x16()
            s0 = s1 = s2 = s3 = zero_f32x4()
            for g in range(n_groups):
                q, o = p + g * n_bytes, g * prepared
                prefetch_group(q)
                a0, s0 = dot(q, x0 + o, a0, s0)
                a1, s1 = dot(q, x1 + o, a1, s1)
                a2, s2 = dot(q, x2 + o, a2, s2)
                a3, s3 = dot(q, x3 + o, a3, s3)
            if left:
                end, o = row_end(p, row_bytes, n_in, spare), n_groups * prepared
                a0, s0 = tail(end, x0 + o, left, a0, s0)
                a1, s1 = tail(end, x1 + o, left, a1, s1)
                a2, s2 = tail(end, x2 + o, left, a2, s2)
                a3, s3 = tail(end, x3 + o, left, a3, s3)
            result(y0 + 4 * r, sum_f32(a0) + sum_f32(s0), bias, r, add)
            if n > 1:
                result(y1 + 4 * r, sum_f32(a1) + sum_f32(s1), bias, r, add)
            if n > 2:
                result(y2 + 4 * r, sum_f32(a2) + sum_f32(s2), bias, r, add)
            if n > 3:
                result(y3 + 4 * r, sum_f32(a3) + sum_f32(s3), bias, r, add)

    return rows1, rows4


def _prepared_bytes(group):
    """Make prepared_bytes(n_in) of a row group."""
    values, prepared = group.values, group.prepared

    @callee
    def prepared_bytes(n_in):
        return (n_in + values - 1) // values * prepared

    return prepared_bytes


def _row_preparer(prepare, prepared_bytes):
    """Make prepare_rows(args, t0, t1, px)."""

    @callee_out_of_line
    def prepare_rows(args, t0, t1, px):
        """Transform input rows [t0, t1), behind their places if at all, and prepare them at px."""
        n_in = word(args, GEMV.n_in)
        px_bytes = prepared_bytes(n_in)
        spare = px + (t1 - t0) * px_bytes
        for t in range(t0, t1):
            prepare(input_row(args, GEMV, t, 0, n_in, spare), n_in, px)
            px += px_bytes

    return prepare_rows


def _four_by_one(group, rows4):
    """Return how a few rows are multiplied where there is no better way: one weight row by four."""

    @callee_out_of_line
    def rows(w, row_bytes, r0, r1, n_in, px, px_bytes, n, spare, bias, add, y, ldy):
        xs, ys = spaced(px, px_bytes, n), spaced(y, ldy, n)
        rows4(w, row_bytes, r0, r1, n_in, xs, n, spare, bias, add, ys)

    return FewRows(group.prepare, _prepared_bytes(group), rows)


def _multi(few):
    """Make multi from the way of a few rows."""
    prepared_bytes, rows = few.prepared_bytes, few.rows
    prepare_rows = _row_preparer(few.prepare, prepared_bytes)

    def multi(args, thread, n_threads):
        n, n_in, n_out = count(args, GEMV.n_rows), word(args, GEMV.n_in), word(args, GEMV.n_out)
        spare = word(args, GEMV.scratch) + thread * word(args, GEMV.scratch_stride)
        px, px_bytes, ldy = spare + SPARE, prepared_bytes(n_in), word(args, GEMV.ldy)
        step = rows_per_claim(n_out, n_threads, 128)
        per_batch = (n_out + step - 1) // step
        batch = 0
        if word(args, GEMV.reuse) == 0 or n > MULTI_ROWS:
            prepare_rows(args, 0, min(n, MULTI_ROWS), px)
        while True:
            item = atomic_add(word(args, GEMV.counter), 1)
            t0 = item // per_batch * MULTI_ROWS
            if t0 >= n:
                break
            t1, r0 = min(n, t0 + MULTI_ROWS), item % per_batch * step
            if batch != item // per_batch:
                batch = item // per_batch
                prepare_rows(args, t0, t1, px)
            for t in range(t0, t1, PASS_ROWS):
                rows(
                    word(args, GEMV.w),
                    word(args, GEMV.row_bytes),
                    r0,
                    min(n_out, r0 + step),
                    n_in,
                    px + (t - t0) * px_bytes,
                    px_bytes,
                    min(t1 - t, PASS_ROWS),
                    spare,
                    word(args, GEMV.bias),
                    word(args, GEMV.add),
                    word(args, GEMV.y) + t * ldy,
                    ldy,
                )

    return multi


def kernels(group):
    """Return gemv and multi of a weight type."""
    rows1, rows4 = row_loops(group)
    prepare_rows = _row_preparer(group.prepare, _prepared_bytes(group))

    def gemv(args, thread, n_threads):
        if count(args, GEMV.n_rows) < 1:
            return
        n_in, n_out = word(args, GEMV.n_in), word(args, GEMV.n_out)
        spare = word(args, GEMV.scratch) + thread * word(args, GEMV.scratch_stride)
        px = spare + SPARE
        if word(args, GEMV.reuse) == 0:
            prepare_rows(args, 0, 1, px)
        while True:
            r0, r1 = claimed_rows(atomic_add(word(args, GEMV.counter), 1), n_out, n_threads)
            if r0 >= n_out:
                break
            rows1(
                word(args, GEMV.w),
                word(args, GEMV.row_bytes),
                r0,
                r1,
                n_in,
                px,
                spare,
                word(args, GEMV.bias),
                word(args, GEMV.add),
                word(args, GEMV.y),
            )

    plain = _four_by_one(group, rows4)
    return {"gemv": gemv, "multi": _multi(group.few(plain) if group.few else plain)}
