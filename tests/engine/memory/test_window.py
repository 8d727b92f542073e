"""Layers with a window keep a window of pages, give the others back, and say how far they reach."""

import numpy as np
import pytest

from engine.errors import InternalError, RequestError
from engine.memory import KVLayer, Memory, Segment

WINDOW = 64
FULL, LOCAL = KVLayer(1, 16, 16), KVLayer(1, 16, 16, WINDOW)
IN_SIGHT = WINDOW // 32 + 1  # pages that a window can touch


def make_memory(n_ctx=2048, n_seq_max=3, layers=(LOCAL, FULL), n_batch=128):
    return Memory(layers, n_ctx, n_seq_max, "f16", "f16", n_batch=n_batch)


def write(memory, seq_id, n, size=100):
    """Place n tokens in batches, as a prompt is read."""
    while n:
        start, some = memory.seq_pos_max(seq_id) + 1, min(n, size)
        positions = np.arange(start, start + some, dtype=np.int32)
        memory.place([Segment(seq_id, 0, some)], positions, positions + 7)
        n -= some


def pages(memory, seq_id):
    return [one.n_pages for one in memory.lists[seq_id]]


def test_a_long_sequence_keeps_a_window_of_pages():
    memory = make_memory()
    write(memory, 0, 1500)
    write(memory, 0, 500, size=1)
    n_full, n_local = pages(memory, 0)
    assert n_full == 63 and n_local <= IN_SIGHT
    assert memory.stats()["pages_used"] == n_full + n_local
    assert memory.stats()["bytes_used"] == (n_full + n_local) * 2 * 32 * 16 * 2
    assert 2000 - WINDOW - 31 <= memory.seq_pos_min(0) <= 2000 - WINDOW
    assert memory.tokens(0) == list(range(7, 2007))


def test_the_pool_of_a_window_is_made_small():
    pool = make_memory(n_ctx=32768, n_seq_max=1).pools[1]
    assert pool.shape.window == WINDOW
    assert pool.n_pages <= 4 * IN_SIGHT + 128 // 32 + 4
    assert make_memory(n_ctx=32768, n_seq_max=1).pools[0].n_pages >= 1024


def test_every_sequence_may_be_full_at_once():
    memory = make_memory(n_ctx=640)
    for seq_id in range(3):
        write(memory, seq_id, 200, size=128)
    for _ in range(8):
        segments = [Segment(i, i, i + 1) for i in range(3)]
        due = np.array([memory.seq_pos_max(i) + 1 for i in range(3)], np.int32)
        memory.place(segments, due, due)
    assert all(pages(memory, i)[1] <= IN_SIGHT + 3 for i in range(3))


def test_a_page_is_freed_when_the_last_window_has_passed_it():
    memory = make_memory()
    write(memory, 0, 64)
    memory.seq_cp(0, 1)
    write(memory, 0, 300)
    local = memory.pools[1]
    assert local.references[memory.lists[1][1].pages].tolist() == [1, 1]
    used = local.n_pages - local.n_free
    write(memory, 1, 300)
    assert local.n_pages - local.n_free <= used + IN_SIGHT + 3 - 2


def test_going_back_within_the_window_is_free():
    memory = make_memory()
    write(memory, 0, 500, size=50)
    assert memory.seq_rm(0, 480)
    assert (memory.seq_pos_max(0), len(memory.tokens(0))) == (479, 480)


def test_going_back_behind_the_window_is_refused_and_changes_nothing():
    memory = make_memory()
    write(memory, 0, 500)
    before = memory.stats(), memory.tokens(0), memory.seq_pos_min(0)
    assert [memory.reaches(0, pos) for pos in (0, 300, 400, 500)] == [True, False, True, True]
    assert not memory.seq_rm(0, 300)
    assert not memory.seq_rm(-1, 300)
    assert (memory.stats(), memory.tokens(0), memory.seq_pos_min(0)) == before
    assert memory.seq_rm(0) and memory.seq_pos_max(0) == -1
    write(memory, 0, 100)
    assert memory.seq_pos_min(0) == 0


def test_a_prefix_behind_the_window_cannot_be_shared():
    memory = make_memory()
    write(memory, 0, 500)
    write(memory, 1, 10)
    with pytest.raises(RequestError, match="read again"):
        memory.seq_cp(0, 1, 0, 300)
    assert memory.seq_pos_max(1) == 9
    memory.seq_cp(0, 1)
    assert memory.seq_pos_min(1) == memory.seq_pos_min(0) > 300


def test_a_copied_end_hides_what_lies_before_its_hole():
    memory = make_memory()
    write(memory, 0, 500)
    write(memory, 1, 100)
    memory.seq_cp(0, 1, 200, -1)
    assert len(memory.tokens(1)) == 400
    assert memory.seq_pos_min(1) == memory.seq_pos_min(0)


def test_a_context_shift_takes_the_window_along():
    memory = make_memory()
    write(memory, 0, 1000)
    low = memory.seq_pos_min(0)
    assert memory.seq_rm(0, 10, 400)
    memory.seq_add(0, 400, -1, -390)
    assert (memory.seq_pos_min(0), memory.seq_pos_max(0)) == (low - 390, 609)


def test_a_shift_that_brings_lost_cells_into_sight_is_refused():
    memory = make_memory()
    write(memory, 0, 500)
    assert memory.seq_rm(0, 10, 470)
    before = memory.tokens(0), memory.stats()
    with pytest.raises(RequestError, match="come into sight"):
        memory.seq_add(0, 470, -1, -460)
    assert (memory.tokens(0), memory.stats()) == before
    with pytest.raises(RequestError, match="come into sight"):
        memory.seq_div(0, 0, -1, 100)
    memory.seq_add(0, 470, -1, -390)
    assert memory.seq_pos_max(0) == 109


def test_a_snapshot_brings_a_lost_window_back():
    memory = make_memory()
    write(memory, 0, 300)
    snapshot = memory.snapshot(0)
    write(memory, 0, 300)
    assert not memory.seq_rm(0, 300)
    used = memory.stats()["bytes_used"]
    memory.restore(snapshot, 0)
    snapshot.release()
    assert memory.stats()["bytes_used"] <= used
    assert memory.seq_pos_max(0) == 299
    write(memory, 0, 300)


def test_what_only_snapshots_hold_is_counted():
    memory = make_memory()
    write(memory, 0, 300)
    snapshot = memory.snapshot(0)
    assert memory.stats()["bytes_kept"] == 0
    memory.clear()
    assert memory.stats()["bytes_kept"] == snapshot.n_bytes == memory.stats()["bytes_used"]
    snapshot.release()
    assert memory.stats()["bytes_kept"] == 0


def test_room_for_snapshots_is_beside_the_context():
    page = 2 * 32 * 16 * 2
    memory = Memory((FULL,), 256, 1, "f16", "f16", snapshot_bytes=64 * page)
    held = []
    for _ in range(8):
        write(memory, 0, 256)
        held.append(memory.snapshot(0))
        memory.clear()
    assert memory.stats()["bytes_kept"] == 64 * page
    write(memory, 0, 256)
    for snapshot in held:
        snapshot.release()


def test_tokens_are_known_where_every_layer_has_a_window():
    memory = make_memory(layers=(LOCAL, KVLayer(1, 16, 16, 32)))
    write(memory, 0, 500)
    assert memory.tokens(0) == list(range(7, 507))
    assert memory.seq_pos_max(0) == 499
    assert [pool.shape.window for pool in memory.pools] == [0, 32, 64]
    assert not memory.seq_rm(0, 300)


def test_a_window_that_lost_too_much_is_found():
    memory = make_memory()
    write(memory, 0, 500)
    local = memory.lists[0][1]
    kept = local.pos_min
    local.forget_before(495)
    with pytest.raises(InternalError, match="next token sees"):
        memory.check_integrity()
    assert local.pos_min > kept
    memory.clear()
