"""A file that is added to: only what is new is written, and a crash at any byte harms nothing."""

import hashlib
import json
import struct

import numpy as np
import pytest

from engine.errors import MachineError, StateFileError
from engine.memory import (
    KVLayer,
    Memory,
    Segment,
    copy_sequence,
    peek_sequence,
    read_sequence,
    restore_sequence,
)
from engine.memory.page_list import NO_END

FINGERPRINT = {"model": "a hash", "architecture": "llama", "model name": "Tiny"}
FULL, LOCAL = KVLayer(2, 16, 16), KVLayer(1, 16, 16, 64)
N_VOCAB = 200_000
ROW = np.arange(300, dtype=np.float32)


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    """Files are written hundreds of times here, and a busy disk takes a second for each."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


def make_memory(layers=(FULL, FULL), n_ctx=10_240):
    return Memory(layers, n_ctx, 3, "f16", "f16", n_batch=256)


def write(memory, seq_id, tokens):
    """Place tokens in batches; the bytes of K and V of each cell are made of what stands there."""
    for start in range(0, len(tokens), 200):
        piece = np.array(tokens[start : start + 200], np.int32)
        first = memory.seq_pos_max(seq_id) + 1
        positions = np.arange(first, first + len(piece), dtype=np.int32)
        placed = memory.place([Segment(seq_id, 0, len(piece))], positions, piece)
        for pool, cells in zip(memory.pools, placed.cells, strict=True):
            for v in pool.v:
                n = pool.shape.n_head_kv
                pages = v.view(np.float16).reshape(len(v), n, 32, 16)
                pages[cells // 32, :, cells % 32] = (piece % 1000)[:, None, None]


def values(memory, seq_id):
    """What stands in the V of each cell of each pool, by position."""
    found = []
    for one in (each for each in memory.lists[seq_id] if each.pool.v):
        v = one.pool.v[-1].view(np.float16).reshape(one.pool.n_pages, -1, 32, 16)
        found.append(v[one.pages].swapaxes(1, 2)[one.visible() != -1][:, 0, 0].tolist())
    return found


def save(memory, seq_id, path, *, adds=True, behind=(), row=ROW):
    snapshot = memory.snapshot(seq_id, FINGERPRINT)
    try:
        return snapshot.write(path, {"row": row}, adds=adds, behind=behind)
    finally:
        snapshot.release()


def read(memory, path):
    return read_sequence(path, FINGERPRINT, memory.pools, N_VOCAB)


def held(memory, path):
    """The tokens in a file and in its pages."""
    saved = read(memory, path)
    restore_sequence(memory, 2, saved)
    tokens, stood = memory.tokens(2), values(memory, 2)
    memory.check_integrity()
    memory.seq_rm(2, 0, NO_END)
    for each in stood:
        assert each == [token % 1000 for token in tokens[len(tokens) - len(each) :]]
    return tokens


def page_bytes(memory):
    return sum(pool.page_bytes for pool in memory.pools)


def test_an_answer_adds_its_own_pages_only(tmp_path):
    memory, path = make_memory(), tmp_path / "chat"
    said = list(range(4000))
    write(memory, 0, said)
    whole = save(memory, 0, path)
    assert whole > 125 * page_bytes(memory)
    header = 4096 + ROW.nbytes
    for n_new in (1, 31, 40, 300):
        more = list(range(len(said), len(said) + n_new))
        write(memory, 0, more)
        said += more
        size = path.stat().st_size
        written = save(memory, 0, path)
        n_pages = -(-n_new // 32) + 1
        assert written <= n_pages * page_bytes(memory) + header
        assert path.stat().st_size == size + written
        assert held(memory, path) == said
    assert save(memory, 0, path) == 0


def test_the_longest_name_that_a_disk_takes_will_do(tmp_path):
    memory, path = make_memory(), tmp_path / ("灯" * 80 + ".safetensors")
    write(memory, 0, range(100))
    save(memory, 0, path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_another_branch_and_going_back_add_what_differs(tmp_path):
    memory, path = make_memory(), tmp_path / "chat"
    write(memory, 0, range(3000))
    save(memory, 0, path)
    memory.seq_rm(0, 2900, NO_END)
    write(memory, 0, range(5000, 5090))
    assert save(memory, 0, path) <= 5 * page_bytes(memory) + 8192
    assert held(memory, path) == [*range(2900), *range(5000, 5090)]
    memory.seq_rm(0, 2950, NO_END)
    assert save(memory, 0, path) <= 2 * page_bytes(memory) + 8192
    assert held(memory, path) == [*range(2900), *range(5000, 5050)]
    memory.seq_rm(0, 2900, NO_END)
    write(memory, 0, range(2900, 3000))  # the first branch again: its pages are not listed any more
    save(memory, 0, path)
    assert held(memory, path) == list(range(3000))


def test_a_shifted_context_adds_what_moved(tmp_path):
    memory, path = make_memory(), tmp_path / "chat"
    write(memory, 0, range(1000))
    save(memory, 0, path)
    memory.seq_rm(0, 100, 500)
    memory.seq_add(0, 500, NO_END, -400)
    for pool, _, _ in list(memory.shifted_pages()):
        pool.settle_shifts()
    save(memory, 0, path)
    assert held(memory, path) == [*range(100), *range(500, 1000)]


def test_what_is_dead_is_swept_out_in_time(tmp_path):
    memory, path = make_memory(), tmp_path / "chat"
    write(memory, 0, range(2000))
    whole = save(memory, 0, path)
    total = 0
    for i in range(200):
        memory.seq_rm(0, 1500, NO_END)
        write(memory, 0, range(10_000 + i * 500, 10_500 + i * 500))
        total += save(memory, 0, path)
        assert path.stat().st_size <= 1.5 * whole + (4 << 20) + 8192
    assert held(memory, path) == [*range(1500), *range(109_500, 110_000)][:2000]
    assert total < 200 * whole


def test_a_file_of_many_pieces_is_made_one_again(tmp_path):
    memory, path = make_memory(), tmp_path / "chat"
    n_pieces = []
    for i in range(140):
        write(memory, 0, [i])
        save(memory, 0, path)
        n_pieces.append(len(read(memory, path).file.pieces))
    assert max(n_pieces) == 64
    assert n_pieces.count(1) == 3
    assert held(memory, path) == list(range(140))


@pytest.mark.parametrize("rest", ["nothing", "zeros", "old bytes"])
def test_a_crash_at_any_byte_leaves_the_state_before_or_the_new_one(tmp_path, rest):
    memory, path = make_memory([KVLayer(1, 16, 16)]), tmp_path / "chat"
    write(memory, 0, range(70))
    save(memory, 0, path)
    write(memory, 0, range(70, 75))
    save(memory, 0, path)
    before = path.stat().st_size
    write(memory, 0, range(75, 80))
    save(memory, 0, path)
    whole = path.read_bytes()
    cuts = [*range(before, before + 60), *range(before, len(whole), 97)]
    for at in [*cuts, *range(len(whole) - 70, len(whole))]:
        tail = {"nothing": b"", "zeros": bytes(len(whole) - at), "old bytes": b"\xa5" * 40}[rest]
        path.write_bytes(whole[:at] + tail if at > before or rest != "old bytes" else whole[:at])
        found = held(memory, path)
        assert found == list(range(75)) or (found == list(range(80)) and rest == "zeros"), at
        if at % 5 == 0:  # and whoever goes on from there makes it whole
            save(memory, 0, path)
            assert held(memory, path) == list(range(80))
    path.write_bytes(whole)
    assert held(memory, path) == list(range(80))


def test_what_is_altered_is_refused_or_left_out(tmp_path):
    memory, path = make_memory(), tmp_path / "chat"
    states = []
    for i in range(3):
        write(memory, 0, range(i * 40, i * 40 + 40))
        save(memory, 0, path)
        states.append(memory.tokens(0))
    whole = path.read_bytes()
    n_refused = 0
    for at in np.random.default_rng(5).integers(0, len(whole), 300).tolist():
        altered = bytearray(whole)
        altered[at] ^= 1 << at % 8
        path.write_bytes(altered)
        try:
            assert held(memory, path) in states
        except StateFileError:
            n_refused += 1
    assert n_refused > 250


def test_pieces_cannot_be_left_out_or_exchanged(tmp_path):
    memory, path = make_memory(), tmp_path / "chat"
    ends = []
    for i in range(4):
        write(memory, 0, range(i * 40, i * 40 + 40))
        save(memory, 0, path)
        ends.append(path.stat().st_size)
    whole = path.read_bytes()
    pieces = [whole[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    for order in ([0, 2], [0, 2, 1, 3], [0, 1, 3], [0, 1, 1]):
        path.write_bytes(b"".join(pieces[i] for i in order))
        with pytest.raises(StateFileError, match="checksum"):
            read(memory, path)
    path.write_bytes(whole + b"x")
    with pytest.raises(StateFileError, match="follows its end"):
        read(memory, path)


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    memory, path = make_memory(), tmp_path / "chat"
    write(memory, 0, range(100))
    save(memory, 0, path)
    old = path.read_bytes()
    write(memory, 0, range(100, 150))

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(MachineError, match="No space left"):
        save(memory, 0, path)
    assert path.read_bytes() == old


@pytest.mark.parametrize("harm", ["foreign", "cut", "other"])
def test_what_cannot_be_added_to_is_written_whole(tmp_path, harm):
    memory, path = make_memory(), tmp_path / "chat"
    write(memory, 0, range(100))
    if harm == "foreign":
        memory.snapshot(0, {**FINGERPRINT, "model": "another"}).write(path)
        for held_one in list(memory.snapshots):
            held_one.release()
    else:
        save(memory, 0, path)
        path.write_bytes(path.read_bytes()[:-7] if harm == "cut" else b"not a state")
    save(memory, 0, path)
    assert held(memory, path) == list(range(100))
    assert len(read(memory, path).file.pieces) == 1


def test_a_foreign_file_is_refused_by_the_name_of_its_model(tmp_path):
    memory, path = make_memory(), tmp_path / "chat"
    write(memory, 0, range(100))
    save(memory, 0, path)
    other = {"model": "another hash", "architecture": "gemma3", "model name": "Gemma 3"}
    with pytest.raises(StateFileError, match="its model is “Tiny”, here it is “Gemma 3”"):
        peek_sequence(path, other, N_VOCAB)


def as_first_written(path, tokens, memory):
    """A file as the first version wrote it: one piece, no lists, a checksum of the arrays only."""
    one = memory.lists[0][0]
    arrays = {"tokens": np.array(tokens, np.int32), "pool.0.positions": one.visible()}
    for i, layer in enumerate(one.pool.layer_ids):
        arrays[f"layer.{layer}.k"] = one.pool.k[i][one.pages]
        arrays[f"layer.{layer}.v"] = one.pool.v[i][one.pages]
    body = b"".join(array.tobytes() for array in arrays.values())
    meta = {"checksum": hashlib.sha256(body).hexdigest(), "format": "inglenook sequence 2"}
    header, start = {"__metadata__": {**meta, **FINGERPRINT}}, 0
    for name, array in arrays.items():
        kind = "I32" if array.dtype == np.int32 else "U8"
        span = [start, start + array.nbytes]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": span}
        start += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 64)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def test_older_files_are_read_and_added_to(tmp_path):
    memory, path = make_memory(), tmp_path / "chat"
    write(memory, 0, range(100))
    as_first_written(path, range(100), memory)
    assert held(memory, path) == list(range(100))
    copy_sequence(read(memory, path), tmp_path / "copy", memory.pools, 70)
    assert held(memory, tmp_path / "copy") == list(range(70))
    write(memory, 0, range(100, 140))
    assert save(memory, 0, path) < path.stat().st_size / 2
    assert held(memory, path) == list(range(140))
    whole = path.read_bytes()
    path.write_bytes(whole[:3000] + bytes([whole[3000] ^ 1]) + whole[3001:])
    with pytest.raises(StateFileError, match="checksum"):
        read(memory, path)


# ------------------------------------------------------------- checkpoints


def checkpointed(memory, path, n_prompt, n_answer, first=0):
    """Read a prompt, hold it, answer, and save both."""
    write(memory, 0, range(first, first + n_prompt))
    behind = memory.snapshot(0, FINGERPRINT)
    for token in range(n_answer):
        write(memory, 0, [90_000 + token])
    written = save(memory, 0, path, behind=[behind])
    behind.release()
    return written


@pytest.mark.parametrize("n_answer", [1, 20, 63, 64, 150, 300])
def test_a_window_goes_on_from_before_the_answer_too(tmp_path, n_answer):
    memory, path = make_memory([FULL, LOCAL]), tmp_path / "chat"
    checkpointed(memory, path, 500, n_answer)
    assert len(held(memory, path)) == 500 + n_answer
    assert peek_sequence(path, FINGERPRINT, N_VOCAB).checkpoints == (500,)
    saved = read(memory, path)
    restore_sequence(memory, 1, saved.first(500))
    assert memory.tokens(1) == list(range(500))
    assert values(memory, 1)[1] == [t % 1000 for t in range(500)][-len(values(memory, 1)[1]) :]
    assert memory.reaches(1, 500)
    write(memory, 1, range(500, 540))
    memory.check_integrity()


def test_each_answer_moves_the_checkpoint_and_adds_little(tmp_path):
    memory, path = make_memory([FULL, LOCAL]), tmp_path / "chat"
    whole = checkpointed(memory, path, 2000, 40)
    n, ends = 2040, [2000]
    for turn in range(8):
        written = checkpointed(memory, path, 30, 100, first=3000 + turn * 100)
        assert written <= 8 * page_bytes(memory) + 8192 < whole / 4
        saved = read(memory, path)
        ends.append(n + 30)
        assert saved.checkpoints == tuple(ends[-6:])
        n += 130
        assert len(saved.tokens) == n
        for end in saved.checkpoints:
            restore_sequence(memory, 1, saved.first(end))
            assert memory.reaches(1, end)
            assert memory.tokens(1) == memory.tokens(0)[:end]
            stood = values(memory, 1)[1]
            assert stood == [token % 1000 for token in memory.tokens(0)[end - len(stood) : end]]
            memory.check_integrity()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("checkpoints", [0]),
        ("checkpoints", [9999]),
        ("checkpoints", [-3]),
        ("checkpoints", [500, 500]),
        ("checkpoints", [500, 400]),
        ("checkpoints", [300, 500]),
        ("checkpoints", range(1, 90)),
        ("pool.1.behind.500", [99]),
        ("pool.1.behind.500", [-1]),
        ("pool.1.behind.500", []),
        ("pool.0.pages", [99] * 17),
        ("pool.0.pages", [0] * 17),
        ("pool.0.pages", [0] * 100_000),
        ("pool.1.behind.500", [0] * 100_000),
    ],
)
def test_lists_that_lie(tmp_path, name, value):
    from engine.memory.state_file import read_state, write_state
    from engine.memory.state_piece import Part

    memory, path = make_memory([FULL, LOCAL]), tmp_path / "chat"
    checkpointed(memory, path, 500, 20)
    (piece,) = read_state(path).pieces
    arrays = {key: np.array(array) for key, array in piece.arrays.items()}
    arrays[name] = np.array(value, np.int32)
    kinds = {"int32": "I32", "uint8": "U8", "float32": "F32"}
    parts = [Part.of(key, kinds[str(a.dtype)], a) for key, a in arrays.items()]
    write_state(path, {k: v for k, v in piece.metadata.items() if k != "sha256"}, parts)
    with pytest.raises(StateFileError, match="damaged"):
        read(memory, path)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_was_done_between_the_file_holds_what_memory_holds(tmp_path, seed):
    rng = np.random.default_rng(seed)
    layers = [[FULL], [FULL, LOCAL], [LOCAL]][seed % 3]
    memory, path = make_memory(layers, n_ctx=4096), tmp_path / "chat"
    for step in range(40):
        n = memory.lists[0][0].n_cells
        act = rng.integers(0, 6)
        if act < 3 or n < 50:
            if n > 1200 and not memory.seq_rm(0, int(rng.integers(100, 600)), NO_END):
                memory.seq_rm(0, 0, NO_END)
            first = int(rng.integers(0, 99)) * 1000
            write(memory, 0, range(first, first + int(rng.integers(1, 150))))
        elif act == 3 and not memory.seq_rm(0, int(rng.integers(1, n)), NO_END):
            continue
        elif act == 4 and LOCAL not in layers:
            end = int(rng.integers(20, n))
            start = int(rng.integers(1, end))
            memory.seq_rm(0, start, end)
            memory.seq_add(0, end, NO_END, start - end)
            for pool, _, _ in list(memory.shifted_pages()):
                pool.settle_shifts()
        behind = []
        while rng.random() < 0.5:
            behind.append(memory.snapshot(0, FINGERPRINT))
            write(memory, 0, range(500, 500 + int(rng.integers(1, 130))))
        save(memory, 0, path, behind=behind)
        for each in behind:
            each.release()
        saved = read(memory, path)
        assert {each.n_cells for each in behind} <= set(saved.checkpoints)
        for end in saved.checkpoints:
            restore_sequence(memory, 1, saved.first(end))
            assert memory.tokens(1) == memory.tokens(0)[:end]
            assert memory.reaches(1, end)
            memory.check_integrity()
            memory.seq_rm(1, 0, NO_END)
        assert held(memory, path) == memory.tokens(0), step
        if rng.random() < 0.1:  # a crash
            path.write_bytes(path.read_bytes()[: -int(rng.integers(1, 60))])
