"""Embeddings in pieces are those of the whole text, and a ranking model's head scores its row."""

import gguf
import numpy as np
import pytest

from engine.errors import ContextFullError, InternalError, ModelFileError, RequestError
from engine.runtime import Model
from tests.make.architecture import draw_weights, normalised_square, read_recipe, write_model

TOKENS = np.random.default_rng(8).integers(0, 128, 200)


@pytest.fixture(scope="module", params=["llama-dense", "gemma3-dense"])
def model(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.gguf"
    with Model.load(write_model(read_recipe(request.param), path)) as model:
        yield model


def in_pieces(context, tokens, pooling, n_most, between=lambda: None):
    run, n_steps = context.embedding(tokens, pooling), 1
    while not run.step(n_most):
        n_steps += 1
        between()
    assert n_steps == -(-len(tokens) // n_most)
    return run.result()


@pytest.mark.parametrize("pooling", ["none", "mean", "cls", "last"])
@pytest.mark.parametrize("n_most", [1, 7, 64, 200])
def test_pieces_give_what_the_whole_gives(model, pooling, n_most):
    with model.context(n_ctx=512, n_seq_max=2, n_threads=1) as context:
        whole = context.embed(TOKENS[:90], pooling)
        said = []

        def between():
            said.append(int(context.decode(said[-1:] or TOKENS[:5]).argmax()))

        pieces = in_pieces(context, TOKENS[:90], pooling, n_most, between)
        assert pieces.shape == whole.shape
        assert normalised_square(pieces, whole) <= 1e-5
        context.memory.clear()
        alone = [int(context.decode(TOKENS[:5]).argmax())] if said else []
        while len(alone) < len(said):
            alone.append(int(context.decode(alone[-1:]).argmax()))
        assert alone == said


def test_one_text_at_a_time_and_none_too_long(model):
    with model.context(n_ctx=256, n_seq_max=1, n_threads=1) as context:
        first = context.embedding(TOKENS[:90])
        first.step(40)
        context.embedding(TOKENS[:50]).step(10)
        with pytest.raises(InternalError, match="same time"):
            first.step(40)
        with pytest.raises(ContextFullError):
            context.embedding(np.tile(TOKENS, 2))
        with pytest.raises(RequestError):
            context.embedding([])
        context.memory.forget_spare()
        assert context.memory.stats()["pages_used"] == 0


HEADS = {
    "dense and output": {
        "cls.weight": [256, 256],
        "cls.bias": [256],
        "cls.output.weight": [256, 3],
    },
    "output": {"cls.output.weight": [256, 1], "cls.output.bias": [1]},
    "narrow": {"cls.weight": [256, 32], "cls.output.weight": [32, 2]},
    "dense": {"cls.weight": [256, 1], "cls.bias": [1]},
}


def ranking(head):
    recipe = read_recipe("llama-dense")
    recipe["kv"]["llama.pooling_type"] = ["UINT32", 4]
    recipe["tensors"] |= head
    return recipe


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("quantized", [False, True])
def test_a_head_scores_the_last_row(tmp_path, head, quantized):
    recipe = ranking(HEADS[head])

    def convert(name, array):
        is_matrix = name.startswith("cls") and array.ndim > 1 and min(array.shape) > 1
        if quantized and is_matrix:
            kind = gguf.GGMLQuantizationType.Q8_0
            return gguf.quants.quantize(array, kind), kind
        return None

    path = write_model(recipe, tmp_path / "rank.gguf", convert)
    with Model.load(path) as model, model.context(n_ctx=256, n_threads=1) as context:
        last = context.embed(TOKENS[:40], pooling="last")[0]
        x = last
        for name in ("cls", "cls.output"):
            if f"{name}.weight" in HEADS[head]:
                weight = draw_weights(
                    f"{name}.weight", HEADS[head][f"{name}.weight"], recipe["seed"]
                )
                x = weight @ x
                if f"{name}.bias" in HEADS[head]:
                    bias = draw_weights(f"{name}.bias", HEADS[head][f"{name}.bias"], recipe["seed"])
                    x = x + bias
                x = np.tanh(x) if name == "cls" else x
        found = context.embed(TOKENS[:40])
        assert found.shape == (1, len(x))
        assert np.allclose(found[0], x, atol=2e-2 if quantized else 1e-4)
        assert np.array_equal(in_pieces(context, TOKENS[:40], None, 40), found)


def test_labels_of_yes_and_no_are_weighed_against_each_other():
    from engine.runtime.rank_head import RankHead

    weight = np.array([[1, 0], [0, 1]], np.float32)
    scores = RankHead(((weight, 0.0, False),), True)(np.array([2, 1], np.float32))
    assert np.allclose(scores, np.exp([2, 1]) / np.exp([2, 1]).sum())


def test_heads_that_cannot_be_are_refused(tmp_path):
    with pytest.raises(ModelFileError, match="lacks the head"):
        Model.load(write_model(ranking({}), tmp_path / "none.gguf"))
    wrong = ranking({"cls.output.weight": [128, 1]})
    with pytest.raises(ModelFileError, match=r"cls\.output"):
        Model.load(write_model(wrong, tmp_path / "wrong.gguf"))
