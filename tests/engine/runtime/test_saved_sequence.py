"""A sequence to a file and back: it goes on as if nothing had happened, or is refused whole."""

import json
import struct

import numpy as np
import pytest
from safetensors import safe_open

from engine.errors import MachineError, RequestError, StateFileError
from engine.runtime import Model
from tests.make.architecture import normalised_square, read_recipe, write_model

TOKENS = np.random.default_rng(3).integers(0, 128, 200)


@pytest.fixture(scope="module", params=["llama-dense", "gemma3-dense"])
def model(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.gguf"
    with Model.load(write_model(read_recipe(request.param), path)) as model:
        yield model


@pytest.fixture
def context(model):
    with model.context(n_ctx=256, n_seq_max=2, n_threads=1) as context:
        context.decode(TOKENS[:70])
        yield context


@pytest.fixture
def saved(context, tmp_path):
    path = tmp_path / "Gespräch – 会話.safetensors"
    context.save_sequence(0, path)
    return path


def test_a_restored_sequence_goes_on_as_before(model, context, saved):
    expected = context.decode(TOKENS[70:80], want="all")
    with model.context(n_ctx=512, n_seq_max=3, n_threads=1) as other:
        other.decode(TOKENS[100:140], seq_ids=2)
        assert other.restore_sequence(2, saved) == TOKENS[:70].tolist()
        assert other.memory.seq_pos_max(2) == 69
        assert np.array_equal(other.decode(TOKENS[70:80], seq_ids=2, want="all"), expected)


def test_what_moved_is_turned_before_it_is_saved(model, context, tmp_path):
    context.memory.seq_rm(0, 10, 30)
    context.memory.seq_add(0, 30, -1, -20)
    context.save_sequence(0, tmp_path / "moved")
    expected = context.decode(TOKENS[70:75])
    tokens = context.restore_sequence(1, tmp_path / "moved")
    assert tokens == [*TOKENS[:10], *TOKENS[30:70]]
    found = context.decode(TOKENS[70:75], seq_ids=1)
    assert normalised_square(found, expected) <= 1e-9


def test_a_full_context_is_saved_forgotten_and_restored(model, tmp_path):
    with model.context(n_ctx=256, n_threads=1) as context:
        context.decode(TOKENS)
        context.save_sequence(0, tmp_path / "full")
        context.memory.clear()
        assert context.restore_sequence(0, tmp_path / "full") == TOKENS.tolist()


def test_an_empty_sequence_may_be_saved(context, tmp_path):
    context.save_sequence(1, tmp_path / "empty")
    assert context.restore_sequence(0, tmp_path / "empty") == []
    assert context.memory.seq_pos_max(0) == -1


def test_the_file_is_plain_safetensors(saved):
    with safe_open(saved, framework="np") as file:
        assert file.get_tensor("tokens").tolist() == TOKENS[:70].tolist()
        assert file.metadata()["format"] == "inglenook sequence 3"


def refused(context, path, reason):
    before = context.decode(TOKENS[70:71])
    context.memory.seq_rm(0, 70)
    with pytest.raises(StateFileError, match=reason):
        context.restore_sequence(0, path)
    assert np.array_equal(context.decode(TOKENS[70:71]), before)
    context.memory.seq_rm(0, 70)


def test_a_file_that_is_cut_or_altered_anywhere(context, saved):
    whole = saved.read_bytes()
    for part in (0, 7, 8, 300, len(whole) // 2, len(whole) - 1):
        saved.write_bytes(whole[:part])
        refused(context, saved, "could not be read|damaged|does not fit")
    for at in np.random.default_rng(4).integers(0, len(whole), 40):
        altered = bytearray(whole)
        altered[at] ^= 1
        saved.write_bytes(altered)
        if altered.isspace() or json_is_same(whole, altered):
            continue
        refused(context, saved, "could not be read|damaged|does not fit")
    saved.write_bytes(whole + b"x")
    refused(context, saved, "follows its end")


def json_is_same(whole, altered):
    """Whether only the padding of the header differs in a way that JSON ignores."""
    size = struct.unpack("<Q", whole[:8])[0]
    return whole[8 + size :] == altered[8 + size :] and _header(whole) == _header(altered)


def _header(content):
    try:
        size = struct.unpack("<Q", content[:8])[0]
        return json.loads(content[8 : 8 + size])
    except ValueError:
        return None


def rewrite(path, change):
    """Change a file's arrays and give it a fitting checksum again: what an attacker would do."""
    from engine.memory.state_file import read_state, write_state
    from engine.memory.state_piece import Part

    (state,) = read_state(path).pieces
    arrays = {name: np.array(array) for name, array in state.arrays.items()}
    metadata = {k: v for k, v in state.metadata.items() if k != "sha256"}
    change(arrays, metadata)
    names = {np.dtype(np.int32): "I32", np.dtype(np.uint8): "U8"}
    parts = [Part.of(n, names[a.dtype], a) for n, a in arrays.items()]
    write_state(path, metadata, parts)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda a, m: m.update(model="another"), "its model is “another”"),
        (lambda a, m: m.update({"memory type": "q8_0/q8_0"}), "its type of K and V"),
        (lambda a, m: m.update(format="inglenook sequence 1"), "its format"),
        (lambda a, m: a.pop("tokens"), "lacks its “tokens”"),
        (lambda a, m: a.pop("layer.1.k"), "lacks its “layer.1.k”"),
        (lambda a, m: a.update(tokens=a["tokens"][:-1]), "positions"),
        (lambda a, m: a["tokens"].put(3, 128), "tokens that the model"),
        (lambda a, m: a["tokens"].put(3, -1), "tokens that the model"),
        (lambda a, m: a["pool.0.positions"].put(3, 50), "disorder"),
        (lambda a, m: a["pool.0.positions"].put(3, -5), "disorder"),
        (lambda a, m: a.update({"layer.0.v": a["layer.0.v"][:, :-1]}), "another shape"),
        (lambda a, m: a.update({"layer.0.v": a["layer.0.v"][:-1]}), "another shape"),
        (lambda a, m: a.update({"pool.0.positions": a["tokens"]}), "lacks its"),
        (lambda a, m: a.pop("pool.0.positions"), "lacks its"),
    ],
)
def test_a_file_of_another_model_or_with_lies(context, saved, change, reason):
    rewrite(saved, change)
    refused(context, saved, reason)


def test_a_window_that_lies(model, context, saved):
    if "gemma3" not in model.info.arch:
        pytest.skip("this model has no window")

    def shorten(arrays, metadata, n_pages):
        for name in ("pool.1.positions", "layer.0.k", "layer.0.v"):
            arrays[name] = arrays[name][n_pages:]
        arrays["pool.1.pages"] = np.arange(len(arrays["layer.0.k"]), dtype=np.int32)

    rewrite(saved, lambda a, m: shorten(a, m, 1))  # a window may begin where nothing is missed
    assert context.restore_sequence(1, saved) == TOKENS[:70].tolist()
    assert context.memory.seq_pos_min(1) == 32
    rewrite(saved, lambda a, m: shorten(a, m, 1))
    refused(context, saved, "remember different cells")
    rewrite(saved, lambda a, m: a["pool.0.positions"].put(95, -1) or a["tokens"].put(0, 1))
    refused(context, saved, "different|disorder|differ")


def test_a_missing_file_and_a_folder(context, tmp_path):
    refused(context, tmp_path / "nothing", "could not be read")
    refused(context, tmp_path, "not a file")


def test_a_sequence_that_does_not_fit(model, context, tmp_path):
    with model.context(n_ctx=512, n_threads=1) as longer:
        longer.decode(np.tile(TOKENS, 2)[:300])
        longer.save_sequence(0, tmp_path / "long")
    refused(context, tmp_path / "long", "300 tokens does not fit")


def test_another_model_is_refused(context, saved, tmp_path):
    recipe = read_recipe("llama-dense.lean")
    with (
        Model.load(write_model(recipe, tmp_path / "other.gguf")) as other,
        other.context(n_ctx=256, n_threads=1) as foreign,
        pytest.raises(StateFileError, match="does not fit"),
    ):
        foreign.restore_sequence(0, saved)


def test_a_folder_that_is_gone(context, tmp_path):
    with pytest.raises(MachineError, match="could not be stored"):
        context.save_sequence(0, tmp_path / "gone" / "file")


def test_a_full_disk_leaves_the_old_file(context, saved, monkeypatch):
    old = saved.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(MachineError, match="No space left"):
        context.save_sequence(0, saved)
    assert saved.read_bytes() == old
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_unknown_sequences(context, saved):
    with pytest.raises(RequestError, match="no sequence 2"):
        context.save_sequence(2, saved)
    with pytest.raises(RequestError, match="no sequence 2"):
        context.restore_sequence(2, saved)


def test_what_the_owner_gives_along_comes_back_and_tokens_can_be_peeked(context, tmp_path):
    row = np.arange(5, dtype=np.float32)
    snapshot = context.snapshot_sequence(0)
    path = tmp_path / "with.state"
    snapshot.write(path, {"row": row})
    snapshot.release()
    assert np.array_equal(context.read_saved(path).extras["row"], row)
    assert context.peek_saved(path) == context.memory.tokens(0)
    altered = bytearray(path.read_bytes())
    altered[-1] ^= 1
    path.write_bytes(altered)
    assert context.peek_saved(path) == context.memory.tokens(0)
    with pytest.raises(StateFileError):
        context.read_saved(path)
    path.write_bytes(altered[: len(altered) // 2])
    with pytest.raises(StateFileError, match="cut short"):
        context.peek_saved(path)
