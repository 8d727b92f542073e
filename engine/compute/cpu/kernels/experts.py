"""Products with chosen experts: row t multiplies by n_used of n_expert stacked matrices.

Work is shared out as (expert, stretch of its rows), so that each weight is read once per four
input rows that chose its expert, however many rows there are.
"""

from engine.compute.cpu.kernels.gemv import row_loops
from engine.compute.cpu.kernels.inputs import input_row
from engine.compute.cpu.kernels.row_types import ROW_GROUPS
from engine.compute.cpu.kernels.sharing import PASS_ROWS, SPARE, rows_per_claim, spaced
from engine.compute.cpu.kernels.words import count, indices, word
from engine.native.simd import atomic_add, callee, callee_out_of_line, load_i32

EXPERTS = indices("experts/product")


@callee
def next_pair(args, expert, pair):
    """First (row, slot) pair from `pair` on that chose the expert, as row * n_used + slot."""
    n_used = word(args, EXPERTS.n_used)
    n_pairs = count(args, EXPERTS.n_rows) * n_used
    ids, ldi = word(args, EXPERTS.ids), word(args, EXPERTS.ldi)
    while pair < n_pairs and load_i32(ids + pair // n_used * ldi + pair % n_used * 4) != expert:
        pair += 1
    return pair


@callee
def output(args, pair):
    """Address of the pair's output row."""
    n_used = word(args, EXPERTS.n_used)
    y = word(args, EXPERTS.y) + pair // n_used * word(args, EXPERTS.ldy)
    return y + pair % n_used * word(args, EXPERTS.slot_y)


def kernels(name):
    """Return the kernels of experts of weight type `name`."""
    group = ROW_GROUPS[name](name)
    _, rows4 = row_loops(group)
    values, prepared, prepare = group.values, group.prepared, group.prepare

    @callee_out_of_line
    def prepare_pair(args, pair, px, row):
        n_in, n_used = word(args, EXPERTS.n_in), word(args, EXPERTS.n_used)
        slot = pair % n_used * word(args, EXPERTS.slot_x)
        prepare(input_row(args, EXPERTS, pair // n_used, slot, n_in, row), n_in, px)

    @callee_out_of_line
    def expert_rows(args, expert, r0, r1, spare, held):
        """Weight rows [r0, r1) of one expert for all that chose it; the expert prepared for."""
        n_in, n_pairs = word(args, EXPERTS.n_in), count(args, EXPERTS.n_rows)
        n_pairs *= word(args, EXPERTS.n_used)
        px, px_bytes = spare + SPARE, (n_in + values - 1) // values * prepared
        first = next_pair(args, expert, 0)
        only_pass = True
        while first < n_pairs:
            p0 = p1 = p2 = p3 = last = first
            n = 0
            while last < n_pairs and n < PASS_ROWS:
                if held != expert:
                    prepare_pair(args, last, px + n * px_bytes, px + PASS_ROWS * px_bytes)
                p1, p2, p3 = last if n < 2 else p1, last if n < 3 else p2, last
                n += 1
                last = next_pair(args, expert, last + 1)
            only_pass = only_pass and last >= n_pairs
            bias = word(args, EXPERTS.bias)
            rows4(
                word(args, EXPERTS.w) + expert * word(args, EXPERTS.expert_bytes),
                word(args, EXPERTS.row_bytes),
                r0,
                r1,
                n_in,
                spaced(px, px_bytes, n),
                n,
                spare,
                bias + expert * word(args, EXPERTS.bias_bytes) if bias else 0,
                word(args, EXPERTS.add),
                (output(args, p0), output(args, p1), output(args, p2), output(args, p3)),
            )
            first = last
        return expert if only_pass else -1

    def product(args, thread, n_threads):
        n_out = word(args, EXPERTS.n_out)
        spare = word(args, EXPERTS.scratch) + thread * word(args, EXPERTS.scratch_stride)
        step = rows_per_claim(n_out, n_threads, 256)
        per_expert = (n_out + step - 1) // step
        held = -1
        while True:
            item = atomic_add(word(args, EXPERTS.counter), 1)
            expert = item // per_expert
            if expert >= word(args, EXPERTS.n_expert):
                break
            r0 = item % per_expert * step
            held = expert_rows(args, expert, r0, min(n_out, r0 + step), spare, held)

    return {"product": product}
