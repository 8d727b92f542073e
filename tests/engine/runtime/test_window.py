"""Decoding with windows: the logits of whole memories, though only a window of pages is kept."""

import numpy as np
import pytest

from engine.errors import ContextFullError, RequestError
from engine.runtime import Model
from tests.make.architecture import normalised_square, read_recipe, write_model

TOKENS = np.random.default_rng(6).integers(0, 128, 700)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.gguf"
    with Model.load(write_model(read_recipe("gemma3-dense"), path)) as model:
        yield model


def test_a_short_window_of_pages_gives_the_logits_of_a_long_one(model):
    with (
        model.context(n_ctx=768, n_threads=1) as whole,
        model.context(n_ctx=768, n_batch=64, n_ubatch=32, n_threads=1) as short,
    ):
        expected = whole.decode(TOKENS, want="all")
        first = short.decode(TOKENS[:600], want="all")
        rest = [short.decode([token]) for token in TOKENS[600:650]]
        drafts = short.decode(TOKENS[650:660], want="all")
        assert short.memory.seq_rm(0, 655)
        last = short.decode(TOKENS[655:], want="all")
        found = np.concatenate([first, *rest, drafts[:5], last])
        assert normalised_square(found, expected) <= 1e-6
        local = short.memory.pools[1]
        assert local.shape.window == 32
        assert local.n_pages - local.n_free <= 64 // 32 + 2 < short.memory.pools[0].n_pages


def stopped(context, after):
    """Let the context fail in the piece number `after` of the next decode."""
    run, left = context._run_ubatch, [after]

    def fail(*arguments):
        left[0] -= 1
        if left[0] == 0:
            context._run_ubatch = run
            raise RequestError("The decode was stopped.")
        run(*arguments)

    context._run_ubatch = fail


@pytest.mark.parametrize("after", [1, 3, 8])
def test_a_failure_in_a_long_batch_leaves_every_sequence_as_it_was(model, after):
    with model.context(n_ctx=768, n_batch=64, n_ubatch=32, n_seq_max=2, n_threads=1) as context:
        context.decode(TOKENS[:100])
        context.decode(TOKENS[:100], seq_ids=1)
        ids = [0] * 200 + [1] * 200
        stopped(context, after)
        with pytest.raises(RequestError, match="stopped"):
            context.decode(np.tile(TOKENS[100:300], 2), seq_ids=ids)
        context.memory.check_integrity()
        assert [context.memory.seq_pos_max(i) for i in range(2)] == [99, 99]
        found = context.decode(np.tile(TOKENS[100:300], 2), seq_ids=ids, want=[199, 399])
        assert np.array_equal(found[0], found[1])
        expected = context.decode(TOKENS[300:310])
        with model.context(n_ctx=768, n_threads=1) as whole:
            assert normalised_square(expected, whole.decode(TOKENS[:310])) <= 1e-6


def test_what_does_not_fit_is_refused_before_anything_is_read(model):
    with model.context(n_ctx=512, n_batch=64, n_threads=1) as context:
        context.decode(TOKENS[:100])
        with pytest.raises(ContextFullError, match="512"):
            context.decode(TOKENS[:413])
        assert context.memory.seq_pos_max(0) == 99
        assert context.memory.seq_pos_min(0) == 0 or context.memory.seq_pos_min(0) <= 68


def test_embedding_a_long_text_leaves_the_sequences_alone(model):
    with model.context(n_ctx=768, n_batch=64, n_threads=1) as context:
        context.decode(TOKENS[:300])
        before = context.memory.stats()
        long = context.embed(TOKENS[:500])
        assert context.memory.stats() == before
        with model.context(n_ctx=768, n_threads=1) as whole:
            assert normalised_square(long, whole.embed(TOKENS[:500])) <= 1e-6


def test_a_saved_window_goes_on_as_before(model, tmp_path):
    with model.context(n_ctx=768, n_batch=64, n_seq_max=2, n_threads=1) as context:
        context.decode(TOKENS[:500])
        context.memory.seq_rm(0, 5, 300)
        context.memory.seq_add(0, 300, -1, -295)
        context.save_sequence(0, tmp_path / "window")
        n_local = context.memory.lists[0][1].n_pages
        expected = context.decode(TOKENS[500:520], want="all")
        tokens = context.restore_sequence(1, tmp_path / "window")
        assert tokens == [*TOKENS[:5], *TOKENS[300:500]]
        assert context.memory.lists[1][1].n_pages == n_local
        found = context.decode(TOKENS[500:520], seq_ids=1, want="all")
        assert np.array_equal(found, expected)
