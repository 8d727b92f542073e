"""The wiring of each architecture, run by the plain twin, gives the reference's logits."""

import pytest

from engine.gguf import GGUF
from engine.hparams import read_hparams
from engine.models import build_graph, describe_layers, find_architecture
from tests.make.architecture import (
    normalised_square,
    read_expected,
    read_recipe,
    recipe_names,
    write_model,
)
from tests.reference.graph_twin import GraphTwin, read_weights


def make_twin(path) -> GraphTwin:
    weights = read_weights(path)
    with GGUF.open(path) as file:
        hparams = read_hparams(file.metadata, file.tensors["token_embd.weight"].shape[1])
        factors = weights.get("rope_freqs.weight")
        spec = find_architecture(hparams.arch)
        layers = describe_layers(spec, hparams, factors)
        graph = build_graph(spec, hparams, layers, set(file.tensors))
    return GraphTwin(graph, weights, [layer.window for layer in layers])


@pytest.mark.parametrize("name", recipe_names())
def test_wiring_gives_the_reference_logits(name, tmp_path):
    twin = make_twin(write_model(read_recipe(name), tmp_path / "model.gguf"))
    expected = read_expected(name)
    tokens = expected["tokens"]
    logits = twin.run(tokens, range(len(tokens)), expected["positions"])
    assert normalised_square(logits, expected["logits"]) <= 1e-5


def test_wiring_in_two_steps_is_the_same(tmp_path):
    twin = make_twin(write_model(read_recipe("gemma3-dense"), tmp_path / "model.gguf"))
    expected = read_expected("gemma3-dense")
    tokens = expected["tokens"]
    twin.run(tokens[:50], range(50), [49])
    logits = twin.run(tokens[50:], range(50, len(tokens)), [len(tokens) - 51])
    assert normalised_square(logits[-1], expected["logits"][-1]) <= 1e-5
