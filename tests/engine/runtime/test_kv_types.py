"""K and V of every type: near the exact answer, turned in place, saved, shared, or refused."""

import numpy as np
import pytest

from engine.errors import RequestError
from engine.memory import KV_TYPES
from engine.runtime import Model
from tests.make.architecture import (
    normalised_square,
    read_expected,
    read_recipe,
    recipe_names,
    write_model,
)

# Largest normalised mean square against logits of float16 K and V, on models of random weights.
TOLERANCES = {"f32": 1e-5, "f16": 1e-5}


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


def test_an_unknown_type_is_refused(models):
    with pytest.raises(RequestError, match="“q8_0”"):
        models("llama-dense").context(type_k="q8")
