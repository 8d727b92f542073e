"""Numbers of a model file: read, defaulted, and refused when they cannot be."""

import numpy as np
import pytest

from engine.errors import ModelFileError
from engine.hparams import read_hparams

GOOD = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.context_length": 256,
    "llama.embedding_length": 64,
    "llama.feed_forward_length": 128,
    "llama.attention.head_count": 4,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
}


def test_defaults():
    found = read_hparams(GOOD, 100)
    assert found.n_head == found.n_head_kv == (4, 4)
    assert (found.head_size_k, found.head_size_v, found.n_rot) == (16, 16, 16)
    assert found.rope.factor == 1.0 and found.rope.n_ctx_orig == 256
    assert found.experts.n_experts == 0 and found.window == 0


def test_a_number_per_layer():
    heads = np.array([4, 2, 8], np.uint32)
    found = read_hparams(GOOD | {"llama.attention.head_count": heads}, 100)
    assert found.n_head == (4, 2)


@pytest.mark.parametrize("key", [key for key in GOOD if key != "general.architecture"])
def test_a_missing_number_is_named(key):
    metadata = {k: v for k, v in GOOD.items() if k != key}
    with pytest.raises(ModelFileError, match=key):
        read_hparams(metadata, 100)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("block_count", 0),
        ("block_count", 10**9),
        ("block_count", "two"),
        ("block_count", 2.5),
        ("attention.head_count", 0),
        ("attention.head_count", np.array([4], np.uint32)),
        ("attention.head_count", np.array([4, 0], np.uint32)),
        ("attention.head_count_kv", 3),
        ("attention.head_count_kv", 0),
        ("attention.key_length", 0),
        ("embedding_length", -1),
        ("embedding_length", 2**40),
        ("context_length", 2**32),
        ("feed_forward_length", 2**62),
        ("rope.dimension_count", 32),
        ("rope.dimension_count", 3),
        ("rope.freq_base", float("nan")),
        ("rope.freq_base", 0.0),
        ("rope.scaling.factor", float("inf")),
        ("rope.scaling.type", "magic"),
        ("rope.scaling.original_context_length", 0),
        ("attention.layer_norm_rms_epsilon", -1.0),
        ("attention.layer_norm_rms_epsilon", "small"),
        ("attention.sliding_window_pattern", np.array([1], np.uint32)),
        ("expert_count", 10**6),
    ],
)
def test_an_impossible_number_is_refused(key, value):
    with pytest.raises(ModelFileError, match=key.split(".")[-1]):
        read_hparams(GOOD | {f"llama.{key}": value}, 100)


def test_more_experts_used_than_there_are():
    metadata = GOOD | {"llama.expert_count": 4, "llama.expert_used_count": 5}
    with pytest.raises(ModelFileError, match="5 of 4"):
        read_hparams(metadata, 100)


def test_fewer_elements_than_heads():
    metadata = GOOD | {"llama.attention.head_count": 128}
    with pytest.raises(ModelFileError, match="key_length"):
        read_hparams(metadata, 100)


@pytest.mark.parametrize("n_vocab", [0, 2**40])
def test_an_absurd_vocabulary(n_vocab):
    with pytest.raises(ModelFileError, match="vocabulary"):
        read_hparams(GOOD, n_vocab)


def test_no_architecture():
    with pytest.raises(ModelFileError, match="architecture"):
        read_hparams({}, 100)
