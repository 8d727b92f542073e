"""K and V of every type: near the exact answer, turned in place, saved, shared, or refused."""

import numpy as np
import pytest

from engine.errors import RequestError, StateFileError
from engine.memory import KV_TYPES, KVLayer, Memory
from engine.runtime import Model
from tests.make.architecture import (
    normalised_square,
    read_expected,
    read_recipe,
    recipe_names,
    write_model,
)

# Largest normalised mean square against logits of float16 K and V, on models of random weights.
TOLERANCES = {"f32": 1e-5, "f16": 1e-5, "bf16": 3e-5, "q8_0": 3e-4, "q5_0": 2e-2, "q5_1": 2e-2}
TOLERANCES |= {"q4_0": 6e-2, "q4_1": 6e-2, "iq4_nl": 6e-2}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder, opened = tmp_path_factory.mktemp("models"), {}

    def find(name):
        if name not in opened:
            path = write_model(read_recipe(name), folder / f"{name}.gguf")
            opened[name] = Model.load(path)
        return opened[name]

    yield find
    for model in opened.values():
        model.close()


def test_every_type_has_a_tolerance():
    assert set(TOLERANCES) == set(KV_TYPES)


@pytest.mark.parametrize("name", recipe_names())
def test_exact_types_give_the_reference_logits(models, name):
    expected = read_expected(name)
    with models(name).context(n_ctx=256, n_threads=2, type_k="f32", type_v="f32") as context:
        logits = context.decode(expected["tokens"], want="all")[expected["positions"]]
    assert normalised_square(logits, expected["logits"]) <= 1e-5


@pytest.mark.parametrize("kind", KV_TYPES)
@pytest.mark.parametrize("name", ["llama-dense", "gemma3-dense"])
def test_every_type_is_near_the_reference(models, name, kind):
    expected = read_expected(name)
    tokens, rows = expected["tokens"], expected["positions"]
    for sizes in ([96], [40, 5, 1, 50], [1] * 96):
        with models(name).context(n_ctx=256, n_threads=2, type_k=kind, type_v=kind) as context:
            ends = np.cumsum(sizes)
            pieces = [
                context.decode(tokens[end - size : end], want="all")
                for end, size in zip(ends, sizes, strict=True)
            ]
        found = np.concatenate(pieces)[rows]
        assert normalised_square(found, expected["logits"]) <= TOLERANCES[kind]


def test_k_and_v_may_differ(models):
    name = "llama-dense"
    expected = read_expected(name)
    with models(name).context(n_ctx=256, n_threads=1, type_k="q8_0", type_v="f32") as context:
        logits = context.decode(expected["tokens"], want="all")[expected["positions"]]
        stored = context.memory.pools[0]
        assert stored.v[0].shape[1] * 34 == stored.k[0].shape[1] * 128
    assert normalised_square(logits, expected["logits"]) <= TOLERANCES["q8_0"]


@pytest.mark.parametrize("kind", KV_TYPES)
@pytest.mark.parametrize("name", ["llama-dense", "gemma3-dense"])
def test_every_type_is_shared_moved_and_restored(models, name, kind, tmp_path):
    """What is shared or restored goes on with the very same logits; also after a shift."""
    tokens = np.random.default_rng(2).integers(0, 128, 200)
    sizes = {"n_ctx": 256, "n_seq_max": 4, "n_batch": 64, "n_threads": 1}
    with models(name).context(**sizes, type_k=kind, type_v=kind) as context:
        context.decode(tokens[:130])
        assert context.memory.seq_rm(0, 4, 60)
        context.memory.seq_add(0, 60, -1, -56)
        context.memory.seq_cp(0, 1)
        snapshot = context.snapshot_sequence(0)
        snapshot.write(tmp_path / "state")
        context.restore_snapshot(snapshot, 2)
        snapshot.release()
        assert len(context.restore_sequence(3, tmp_path / "state")) == 74
        found = [context.decode(tokens[130:150], seq_ids=i, want="all") for i in range(4)]
        assert all(np.array_equal(one, found[0]) for one in found[1:])
    with models(name).context(**sizes, type_k="f32", type_v="f16") as other:
        other_type = f"its type of K and V is “{kind}/{kind}”"
        with pytest.raises(StateFileError, match=other_type):
            other.restore_sequence(0, tmp_path / "state")


@pytest.mark.parametrize("kind", [kind for kind, row in KV_TYPES.items() if row.block > 1])
def test_blocks_that_do_not_divide_the_head_are_refused(kind):
    with pytest.raises(RequestError, match="blocks of 32 values.*have 80: choose f32, f16, bf16"):
        Memory([KVLayer(2, 80, 80)], 256, 1, kind, "f16")
    with pytest.raises(RequestError, match="have 48"):
        Memory([KVLayer(2, 64, 48)], 256, 1, "f16", kind)


def test_an_unknown_type_is_refused(models):
    with pytest.raises(RequestError, match="“q8_0”"):
        models("llama-dense").context(type_k="q8")
