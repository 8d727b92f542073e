"""A snapshot holds what a sequence was: nothing is copied, nothing that follows changes it."""

import threading

import numpy as np
import pytest

from engine.errors import InternalError, RequestError
from engine.runtime import Model
from tests.make.architecture import read_recipe, write_model

TOKENS = np.random.default_rng(5).integers(0, 128, 200)


@pytest.fixture(scope="module", params=["llama-dense", "gemma3-dense"])
def model(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.gguf"
    with Model.load(write_model(read_recipe(request.param), path)) as model:
        yield model


@pytest.fixture
def context(model):
    with model.context(n_ctx=512, n_seq_max=2, n_threads=1) as context:
        context.decode(TOKENS[:70])
        yield context


def test_taking_and_restoring_copies_nothing(context):
    used = context.memory.stats()["pages_used"]
    snapshot = context.snapshot_sequence(0)
    assert context.restore_snapshot(snapshot, 1) == TOKENS[:70].tolist()
    assert context.memory.stats()["pages_used"] == used
    assert (snapshot.n_cells, snapshot.pos_min, snapshot.pos_max) == (70, 0, 69)
    assert snapshot.n_bytes == context.memory.stats()["bytes_used"]
    snapshot.release()


def test_it_goes_on_from_where_it_was_taken(context):
    snapshot = context.snapshot_sequence(0)
    expected = context.decode(TOKENS[70:80], want="all")
    context.memory.seq_rm(0, 20)
    context.decode(TOKENS[100:150])
    context.restore_snapshot(snapshot, 0)
    snapshot.release()
    assert np.array_equal(context.decode(TOKENS[70:80], want="all"), expected)


def test_a_moved_sequence_is_turned_first(context):
    context.memory.seq_rm(0, 10, 30)
    context.memory.seq_add(0, 30, -1, -20)
    snapshot = context.snapshot_sequence(0)
    expected = context.decode(TOKENS[70:80], want="all")
    context.restore_snapshot(snapshot, 1)
    snapshot.release()
    assert np.array_equal(context.decode(TOKENS[70:80], seq_ids=1, want="all"), expected)


def test_released_pages_are_free_again(context):
    snapshot = context.snapshot_sequence(0)
    context.memory.clear()
    assert context.memory.stats()["pages_used"] > 0
    snapshot.release()
    snapshot.release()
    assert context.memory.stats()["pages_used"] == 0
    with pytest.raises(InternalError, match="does not hold"):
        context.restore_snapshot(snapshot, 0)
    with pytest.raises(InternalError, match="released"):
        snapshot.write("nowhere")


def test_it_is_written_while_the_sequence_goes_on(context, tmp_path):
    expected = context.snapshot_sequence(0)
    context.restore_snapshot(expected, 1)
    expected.release()
    snapshot = context.snapshot_sequence(0)
    writer = threading.Thread(target=snapshot.write, args=(tmp_path / "state",))
    writer.start()
    for token in TOKENS[70:80]:
        context.decode([token])
    context.memory.clear()
    context.decode(TOKENS[100:170])
    writer.join()
    snapshot.release()
    assert context.restore_sequence(1, tmp_path / "state") == TOKENS[:70].tolist()
    context.memory.seq_rm(0)
    context.decode(TOKENS[:70])
    found = context.decode(TOKENS[70:75], seq_ids=1, want="all")
    assert np.array_equal(found, context.decode(TOKENS[70:75], want="all"))


def test_a_release_waits_for_the_writer(context, tmp_path, monkeypatch):
    snapshot = context.snapshot_sequence(0)
    context.memory.clear()
    used = context.memory.stats()["pages_used"]

    def release_early(descriptor):
        snapshot.release()
        assert context.memory.stats()["pages_used"] == used

    monkeypatch.setattr("os.fsync", release_early)
    snapshot.write(tmp_path / "state")
    assert context.memory.stats()["pages_used"] == 0
    assert context.restore_sequence(0, tmp_path / "state") == TOKENS[:70].tolist()


def test_unknown_sequences(context):
    with pytest.raises(RequestError, match="no sequence 2"):
        context.snapshot_sequence(2)
    snapshot = context.snapshot_sequence(0)
    with pytest.raises(RequestError, match="no sequence 2"):
        context.restore_snapshot(snapshot, 2)
    snapshot.release()
