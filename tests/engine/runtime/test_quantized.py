"""Quantized models against the plain twin on the same weights, dequantized by another library."""

import gguf
import numpy as np
import pytest

from engine.gguf import GGUF
from engine.hparams import read_hparams
from engine.models import build_graph, describe_layers, find_architecture
from engine.runtime import Model
from tests.make.architecture import normalised_square, read_recipe, write_model
from tests.reference.graph_twin import GraphTwin, read_weights

# Activations are rounded to 8 bits before an integer product; the float types are not.
LIMITS = {"F16": 1e-5, "BF16": 1e-5, "Q4_0": 2e-3, "Q4_1": 2e-3, "Q5_0": 2e-3, "Q5_1": 2e-3}
LIMITS["Q8_0"] = 2e-3
TOKENS = np.random.default_rng(2).integers(0, 128, 60)


def quantized(kind):
    type_ = gguf.GGMLQuantizationType[kind]

    def convert(name, array):
        if array.ndim < 2:
            return None
        return gguf.quants.quantize(array, type_), type_

    return convert


@pytest.mark.parametrize("kind", LIMITS)
@pytest.mark.parametrize("name", ["llama-moe", "gemma3-dense"])
def test_logits_are_those_of_the_dequantized_weights(kind, name, tmp_path):
    path = write_model(read_recipe(name), tmp_path / "model.gguf", quantized(kind))
    expected = twin_logits(path)
    with Model.load(path) as model, model.context(n_ctx=256, n_threads=2) as context:
        whole = context.decode(TOKENS, want="all")
        context.memory.clear()
        single = np.concatenate([context.decode([token]) for token in TOKENS])
        context.memory.clear()
        few = np.concatenate(
            [context.decode(TOKENS[i : i + 6], want="all") for i in range(0, 60, 6)]
        )
    for logits in (whole, single, few):
        assert normalised_square(logits, expected) <= LIMITS[kind]


def twin_logits(path):
    with GGUF.open(path) as file:
        hparams = read_hparams(file.metadata, file.tensors["token_embd.weight"].shape[1])
        spec, weights = find_architecture(hparams.arch), read_weights(path)
        layers = describe_layers(spec, hparams, weights.get("rope_freqs.weight"))
        graph = build_graph(spec, hparams, layers, set(file.tensors))
    twin = GraphTwin(graph, weights, [layer.window for layer in layers])
    return twin.run(TOKENS, range(len(TOKENS)), range(len(TOKENS)))
