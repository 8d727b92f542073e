"""Sequences over pages: what each operation changes, what it costs, and that the books agree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ContextFullError, InternalError, RequestError
from engine.memory import KVLayer, Memory, Segment

LAYERS = (KVLayer(1, 16, 16, 0), KVLayer(1, 16, 16, 40), KVLayer(1, 16, 16, 0))


def make_memory(n_ctx=256, n_seq_max=4) -> Memory:
    return Memory(LAYERS, n_ctx, n_seq_max, "f16", "f16")


def write(memory, seq_id, n, first=None):
    """Place n tokens, and write a number of its own into every cell, as a kernel would."""
    start = memory.seq_pos_max(seq_id) + 1 if first is None else first
    positions = np.arange(start, start + n, dtype=np.int32)
    placement = memory.place([Segment(seq_id, 0, n)], positions, positions + 1000)
    for pool, cells in zip(memory.pools, placement.cells, strict=True):
        for layer in pool.v:
            rows = layer.view(np.float16).reshape(-1, 16)
            rows[cells, 0] = positions % 512
            rows[cells, 1] = seq_id
    return placement


def read(memory, seq_id, i_pool=0):
    """Return (position, number at writing, writer) of each visible cell of a sequence."""
    one = memory.lists[seq_id][i_pool]
    shown = one.visible()
    rows = memory.pools[i_pool].v[0].view(np.float16).reshape(-1, 32, 16)[one.pages]
    cells = np.argwhere(shown >= 0)
    return [(int(shown[i, j]), int(rows[i, j, 0]), int(rows[i, j, 1])) for i, j in cells]


def positions(memory, seq_id):
    found = [[cell[0] for cell in read(memory, seq_id, i)] for i in range(len(memory.pools))]
    assert all(one == found[0][len(found[0]) - len(one) :] for one in found)
    return found[0]


def test_a_pool_per_layer_shape():
    memory = make_memory()
    assert [pool.layer_ids for pool in memory.pools] == [(0, 2), (1,)]


def test_tokens_take_cells_in_order():
    memory = make_memory()
    placement = write(memory, 0, 40)
    assert placement.cells[0].tolist() == list(range(40))
    assert (memory.seq_pos_min(0), memory.seq_pos_max(0)) == (0, 39)
    assert memory.stats()["pages_used"] == 4
    memory.check_integrity()


def test_an_empty_sequence_has_no_positions():
    memory = make_memory()
    assert (memory.seq_pos_min(2), memory.seq_pos_max(2)) == (-1, -1)


def test_a_copy_shares_every_page():
    memory = make_memory()
    write(memory, 0, 70)
    used = memory.stats()["pages_used"]
    memory.seq_cp(0, 1)
    stats = memory.stats()
    assert stats["pages_used"] == used and stats["pages_shared"] == used
    assert read(memory, 1) == read(memory, 0)
    memory.check_integrity()


def test_writing_into_a_shared_page_copies_it_first():
    memory = make_memory()
    write(memory, 0, 70)
    memory.seq_cp(0, 1)
    write(memory, 1, 5)
    write(memory, 0, 2)
    assert read(memory, 1)[70:] == [(p, p, 1) for p in range(70, 75)]
    assert read(memory, 0)[70:] == [(70, 70, 0), (71, 71, 0)]
    assert read(memory, 0)[:70] == read(memory, 1)[:70]
    memory.check_integrity()


def test_cutting_a_shared_tail_copies_nothing_until_it_is_written():
    memory = make_memory()
    write(memory, 0, 64)
    memory.seq_cp(0, 1)
    used = memory.stats()["pages_used"]
    assert memory.seq_rm(1, 50)
    assert memory.stats()["pages_used"] == used
    assert positions(memory, 1) == list(range(50))
    assert positions(memory, 0) == list(range(64))
    write(memory, 1, 3)
    assert read(memory, 1)[50:] == [(50, 50, 1), (51, 51, 1), (52, 52, 1)]
    assert positions(memory, 0) == list(range(64))
    memory.check_integrity()


def test_removing_the_middle_leaves_both_ends():
    memory = make_memory()
    write(memory, 0, 100)
    memory.seq_cp(0, 1)
    memory.seq_rm(0, 10, 70)
    assert positions(memory, 0) == [*range(10), *range(70, 100)]
    assert positions(memory, 1) == list(range(100))
    memory.check_integrity()


def test_moving_positions_notes_the_shift_and_spares_sharers():
    memory = make_memory()
    write(memory, 0, 100)
    memory.seq_cp(0, 1)
    memory.seq_rm(0, 10, 70)
    memory.seq_add(0, 70, -1, -60)
    assert positions(memory, 0) == list(range(40))
    assert [cell[1] for cell in read(memory, 0)] == [*range(10), *range(70, 100)]
    assert positions(memory, 1) == list(range(100))
    shifted = {id(pool): (pages, deltas) for pool, pages, deltas in memory.shifted_pages()}
    pages, deltas = shifted[id(memory.pools[0])]
    assert sorted(deltas[deltas != 0].tolist()) == [-60] * 30
    memory.check_integrity()


def test_moving_below_zero_forgets():
    memory = make_memory()
    write(memory, 0, 40)
    memory.seq_add(0, 0, -1, -35)
    assert positions(memory, 0) == [0, 1, 2, 3, 4]
    memory.check_integrity()


def test_dividing_positions():
    memory = make_memory()
    write(memory, 0, 40)
    memory.seq_div(0, 0, -1, 4)
    assert positions(memory, 0) == [p // 4 for p in range(40)]
    memory.check_integrity()


def test_moving_into_each_other_is_refused_and_changes_nothing():
    memory = make_memory()
    write(memory, 0, 40)
    with pytest.raises(RequestError, match="out of order"):
        memory.seq_add(0, 0, 10, 100)
    assert positions(memory, 0) == list(range(40))
    memory.check_integrity()


def test_a_full_context_is_refused_and_changes_nothing():
    memory = make_memory(n_ctx=256, n_seq_max=3)
    write(memory, 0, 250)
    write(memory, 1, 250)
    with pytest.raises(ContextFullError, match="256"):
        write(memory, 0, 7)
    assert positions(memory, 0) == list(range(250))
    with pytest.raises(ContextFullError):
        write(memory, 2, 250)
    assert positions(memory, 2) == []
    memory.check_integrity()


def copied(memory, change):
    before = memory.stats()["bytes_copied"]
    change()
    return memory.stats()["bytes_copied"] - before


def test_what_operations_cost_in_bytes():
    memory = make_memory(n_ctx=512)
    page = sum(pool.page_bytes for pool in memory.pools)
    write(memory, 0, 200)
    assert copied(memory, lambda: memory.seq_cp(0, 1)) == 0
    assert copied(memory, lambda: memory.seq_cp(0, 2, 0, 75)) == 0
    assert copied(memory, lambda: memory.seq_rm(1, 180)) == 0
    assert copied(memory, lambda: memory.seq_keep(0)) == 0
    snapshot = memory.snapshot(0)
    assert copied(memory, lambda: memory.restore(snapshot, 3)) == 0
    assert copied(memory, lambda: write(memory, 3, 1)) == page
    assert copied(memory, lambda: write(memory, 3, 40)) == 0
    snapshot.release()
    memory.seq_keep(3)
    assert copied(memory, lambda: memory.seq_rm(3, 10, 100)) == 0
    assert copied(memory, lambda: memory.seq_add(3, 100, -1, -90)) == 0


def test_removing_a_middle_is_done_whole_or_not_at_all():
    memory = make_memory(n_ctx=256, n_seq_max=2)
    write(memory, 0, 250)
    memory.seq_cp(0, 1)
    while memory.pools[0].n_free:
        memory.pools[0].acquire()
    before = read(memory, 0), read(memory, 1)
    for seq_id in (0, -1):
        with pytest.raises(ContextFullError, match="are free"):
            memory.seq_rm(seq_id, 10, 20)
        assert (read(memory, 0), read(memory, 1)) == before
    memory.seq_rm(1)
    assert memory.seq_rm(0, 10, 20)  # nobody shares: nothing is copied
    assert memory.seq_rm(0, 40, 130)  # and whole pages in between come back first
    _forget_taken(memory)


def _forget_taken(memory):
    """Give the pages back that a test has taken for nobody."""
    pool = memory.pools[0]
    listed = np.concatenate([lists[0].pages for lists in memory.lists])
    for page in np.setdiff1d(np.flatnonzero(pool.references), listed):
        pool.release(int(page))


def test_unknown_sequences_are_refused():
    memory = make_memory()
    for call in (memory.seq_rm, memory.seq_keep, memory.seq_pos_max):
        with pytest.raises(RequestError, match="There is no sequence 4"):
            call(4)
    with pytest.raises(RequestError):
        memory.seq_cp(0, -1)


def test_runs_skip_what_a_window_has_passed():
    memory = make_memory()
    write(memory, 0, 150)
    placement = write(memory, 0, 1)
    rows = np.array([0], np.int32)
    assert memory.runs(0, placement, rows)[0, 3] == 5
    assert memory.lists[0][1].n_pages == 2
    assert memory.runs(1, placement, rows)[0, 3] == 2  # positions 111 .. 150
    memory.check_integrity()


def test_an_early_ubatch_sees_only_its_own_pages():
    memory = make_memory()
    placement = write(memory, 0, 100)
    assert memory.runs(0, placement, np.arange(0, 30, dtype=np.int32))[0].tolist()[3] == 1
    assert memory.runs(0, placement, np.arange(30, 64, dtype=np.int32))[0].tolist()[3] == 2


def test_a_wrong_reference_is_found():
    memory = make_memory()
    write(memory, 0, 40)
    memory.pools[0].references[0] += 1
    with pytest.raises(InternalError, match="references"):
        memory.check_integrity()
    memory.pools[0].references[0] -= 1


class Naive:
    """Lists of (position, number, writer) per sequence: what the pages must look like."""

    def __init__(self, n):
        self.cells = [[] for _ in range(n)]

    def write(self, seq_id, n):
        start = self.cells[seq_id][-1][0] + 1 if self.cells[seq_id] else 0
        self.cells[seq_id] += [(p, p % 512, seq_id) for p in range(start, start + n)]

    def remove(self, seq_id, p0, p1):
        self.cells[seq_id] = [c for c in self.cells[seq_id] if not p0 <= c[0] < p1]

    def copy(self, source, target, p0, p1):
        self.remove(target, p0, p1)
        self.cells[target] += [c for c in self.cells[source] if p0 <= c[0] < p1]

    def add(self, seq_id, p0, p1, delta):
        moved = [(p + delta * (p0 <= p < p1), n, w) for p, n, w in self.cells[seq_id]]
        self.cells[seq_id] = [c for c in moved if c[0] >= 0]


steps = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "remove", "copy", "add", "keep"]),
        st.integers(0, 2),
        st.integers(0, 2),
        st.integers(0, 130),
        st.integers(0, 130),
    ),
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(steps)
def test_any_operations_agree_with_plain_lists(operations):
    memory, naive = make_memory(n_ctx=1024, n_seq_max=3), Naive(3)
    for name, a, b, x, y in operations:
        p0, p1 = min(x, y), max(x, y)
        try:
            if name == "write":
                write(memory, a, x)
                naive.write(a, x)
            elif name == "remove" and memory.seq_rm(a, p0, p1):
                naive.remove(a, p0, p1)
            elif name == "copy" and a != b:
                memory.seq_cp(a, b, p0, p1)
                naive.copy(a, b, p0, p1)
            elif name == "add":
                memory.seq_add(a, p0, p1, x - y)
                naive.add(a, p0, p1, x - y)
            elif name == "keep":
                memory.seq_keep(a)
                naive.cells = [c if i == a else [] for i, c in enumerate(naive.cells)]
        except RequestError:
            pass  # refused: nothing may have changed, which the comparison below proves
        memory.check_integrity()
        for seq_id in range(3):
            assert read(memory, seq_id, 0) == naive.cells[seq_id]
            in_window = read(memory, seq_id, 1)
            assert in_window == naive.cells[seq_id][len(naive.cells[seq_id]) - len(in_window) :]
    memory.clear()
    assert memory.stats()["pages_used"] == 0
    memory.check_integrity()
