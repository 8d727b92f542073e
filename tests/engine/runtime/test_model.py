"""Loading: what a good file tells, and how each kind of bad one is refused."""

import copy

import gguf
import numpy as np
import pytest

from engine.errors import ModelFileError, UnsupportedModelError
from engine.runtime import Model, read_model_info
from tests.make.architecture import read_recipe, write_model


@pytest.fixture
def recipe():
    return copy.deepcopy(read_recipe("llama-dense"))


def refuse(recipe, tmp_path, error, reason, convert=None):
    path = write_model(recipe, tmp_path / "model.gguf", convert)
    for open_model in (read_model_info, Model.load):
        with pytest.raises(error, match=reason) as caught:
            open_model(path)
        assert type(caught.value) is error


def test_what_a_model_tells_of_itself(recipe, tmp_path):
    path = write_model(recipe, tmp_path / "Modell – 模型.gguf")
    info = read_model_info(path)
    assert (info.arch, info.n_layer, info.n_embd, info.n_vocab) == ("llama", 2, 256, 128)
    assert (info.n_ctx_train, info.quantizations) == (256, {"F32": len(recipe["tensors"])})
    assert info.n_params == sum(int(np.prod(shape)) for shape in recipe["tensors"].values())
    assert info.size_bytes == path.stat().st_size
    assert info.chat_template is None


def test_progress_goes_through_its_stages_and_may_give_up(recipe, tmp_path):
    path = write_model(recipe, tmp_path / "model.gguf")
    heard = []
    Model.load(path, progress=lambda stage, done: heard.append((stage, done))).close()
    stages = list(dict.fromkeys(stage for stage, _ in heard))
    assert stages[0] == "map" and stages[-1] == "read"
    assert all(0.0 <= done <= 1.0 for _, done in heard) and heard[-1] == ("read", 1.0)

    def give_up(stage, done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Model.load(path, progress=give_up)


def test_a_model_closes_its_contexts(recipe, tmp_path):
    model = Model.load(write_model(recipe, tmp_path / "model.gguf"))
    context = model.context(n_ctx=256, n_threads=2)
    context.decode([1, 2, 3])
    model.close()
    with pytest.raises(Exception, match="closed"):
        context.decode([1])


def test_a_missing_tensor(recipe, tmp_path):
    del recipe["tensors"]["blk.1.attn_k.weight"]
    refuse(recipe, tmp_path, ModelFileError, r"lacks the tensor “blk\.1\.attn_k\.weight”")


def test_a_tensor_of_another_shape(recipe, tmp_path):
    recipe["tensors"]["blk.1.ffn_up.weight"] = [256, 385]
    refuse(recipe, tmp_path, ModelFileError, r"ffn_up.*\[256, 385\].*\[256, 384\]")


def test_numbers_that_contradict_the_tensors(recipe, tmp_path):
    recipe["kv"]["llama.attention.head_count"][1] = 4
    refuse(recipe, tmp_path, ModelFileError, r"attn_q\.weight.*\[256, 512\]")


def test_more_layers_than_tensors(recipe, tmp_path):
    recipe["kv"]["llama.block_count"][1] = 900
    refuse(recipe, tmp_path, ModelFileError, r"lacks the tensor “blk\.2\.")


def test_a_tensor_that_nothing_would_read(recipe, tmp_path):
    recipe["tensors"]["blk.0.attn_sinks.weight"] = [2]
    refuse(recipe, tmp_path, UnsupportedModelError, "attn_sinks")


def test_an_unknown_architecture(recipe, tmp_path):
    recipe["arch"] = "zebra"
    refuse(recipe, tmp_path, UnsupportedModelError, "“zebra”.*gemma3, llama")


def test_a_quantization_without_kernels(recipe, tmp_path):
    def convert(name, array):
        if name != "blk.0.ffn_up.weight":
            return None
        n_bytes = array.size // 256 * 84
        return np.zeros((array.shape[0], n_bytes // array.shape[0]), np.uint8), _Q2_K

    refuse(recipe, tmp_path, UnsupportedModelError, r"Q2_K \(1 tensors\)", convert)


_Q2_K = gguf.GGMLQuantizationType.Q2_K


def test_a_norm_that_is_quantized(recipe, tmp_path):
    def convert(name, array):
        if name != "blk.0.ffn_norm.weight":
            return None
        return gguf.quants.quantize(array, gguf.GGMLQuantizationType.Q8_0), _Q8_0

    refuse(recipe, tmp_path, UnsupportedModelError, "Q8_0", convert)


_Q8_0 = gguf.GGMLQuantizationType.Q8_0


def test_a_vocabulary_of_another_size(recipe, tmp_path):
    recipe["n_vocab"] = 127
    refuse(recipe, tmp_path, ModelFileError, "127 tokens.*128")


def test_no_embedding(recipe, tmp_path):
    del recipe["tensors"]["token_embd.weight"]
    refuse(recipe, tmp_path, ModelFileError, "token_embd")


def test_a_partial_rotation_where_it_must_be_whole(recipe, tmp_path):
    recipe["kv"]["llama.rope.dimension_count"][1] = 64
    refuse(recipe, tmp_path, ModelFileError, "64 of 128")


def test_a_file_that_is_cut_short(recipe, tmp_path):
    path = write_model(recipe, tmp_path / "model.gguf")
    whole = path.read_bytes()
    for part in (0, 3, 100, len(whole) // 2, len(whole) - 64):
        path.write_bytes(whole[:part])
        with pytest.raises(ModelFileError):
            Model.load(path)


@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_vectors_of_half_width_are_read(recipe, tmp_path, kind):
    """Norms and biases may be stored as F16 or BF16; they are widened, not misread."""
    type_ = gguf.GGMLQuantizationType[kind]

    def convert(name, array):
        if array.ndim > 1 or name.startswith("rope"):
            return None
        return gguf.quants.quantize(array, type_), type_

    plain = write_model(recipe, tmp_path / "plain.gguf")
    halved = write_model(recipe, tmp_path / "halved.gguf", convert)
    logits = []
    for path in (plain, halved):
        with Model.load(path) as model, model.context(n_ctx=256, n_threads=1) as context:
            logits.append(context.decode(range(20)))
    difference = ((logits[0] - logits[1]) ** 2).mean() / (logits[0] ** 2).mean()
    assert 0 < difference < 1e-4
