"""Decoding: the reference's logits on every path, and sequences that keep out of each other."""

import numpy as np
import pytest

from engine.errors import ContextFullError, InternalError, ModelFileError, RequestError
from engine.runtime import Model
from tests.make.architecture import (
    normalised_square,
    read_expected,
    read_recipe,
    recipe_names,
    write_model,
)

SIZES = {
    "in one piece": (96,),
    "one by one": (1,) * 96,
    "a few at a time": (7,) * 13 + (5,),
    "all mixed": (1, 40, 5, 1, 12, 13, 24),
}


@pytest.fixture(scope="module", params=recipe_names())
def named_model(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.gguf"
    with Model.load(write_model(read_recipe(request.param), path)) as model:
        yield request.param, model


@pytest.fixture(scope="module", params=["llama-dense", "gemma3-dense"])
def model(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.gguf"
    with Model.load(write_model(read_recipe(request.param), path)) as model:
        yield model


@pytest.fixture(autouse=True)
def closed_contexts(monkeypatch):
    """Close every context that a test opened."""
    opened = []
    make = Model.context

    def watched(self, *arguments, **options):
        opened.append(make(self, *arguments, **options))
        return opened[-1]

    monkeypatch.setattr(Model, "context", watched)
    yield
    for context in opened:
        context.close()


TOKENS = np.random.default_rng(1).integers(0, 128, 400)


@pytest.mark.parametrize("path", SIZES)
@pytest.mark.parametrize("n_threads", [1, 2])
def test_every_path_gives_the_reference_logits(named_model, path, n_threads):
    name, model = named_model
    expected = read_expected(name)
    context = model.context(n_ctx=256, n_threads=n_threads)
    pieces, start = [], 0
    for size in SIZES[path]:
        pieces.append(context.decode(expected["tokens"][start : start + size], want="all"))
        start += size
    logits = np.concatenate(pieces)[expected["positions"]]
    assert normalised_square(logits, expected["logits"]) <= 1e-5


def test_ubatches_change_nothing(model):
    whole = model.context(n_ctx=512).decode(TOKENS, want=[3, 100, 399])
    parts = model.context(n_ctx=512, n_ubatch=32, n_batch=64).decode(TOKENS, want=[3, 100, 399])
    assert normalised_square(parts, whole) <= 1e-6


def test_wanted_rows_come_in_the_order_asked_for(model):
    logits = model.context(n_ctx=256).decode(TOKENS[:50], want="all")
    again = model.context(n_ctx=256).decode(TOKENS[:50], want=[40, 2, 40])
    assert normalised_square(again, logits[[40, 2, 40]]) <= 1e-6
    assert model.context(n_ctx=256).decode(TOKENS[:50], want=[]).shape == (0, 128)


def test_interleaved_sequences_are_as_if_alone(model):
    alone = [model.context(n_ctx=256).decode(TOKENS[i * 40 :][:40], want="all") for i in range(3)]
    context = model.context(n_ctx=512, n_seq_max=3)
    rows = np.concatenate([[0] * 10, np.tile([2, 1], 40), [0] * 30])
    order = {i: iter(TOKENS[i * 40 :][:40]) for i in range(3)}
    logits = context.decode([next(order[i]) for i in rows], seq_ids=rows, want="all")
    for i in range(3):
        assert normalised_square(logits[rows == i], alone[i]) <= 1e-6


def test_one_token_of_each_of_several_sequences(model):
    context = model.context(n_ctx=512, n_seq_max=3)
    for i in range(3):
        context.decode(TOKENS[i * 40 :][: 20 + i], seq_ids=i)
    together = context.decode(TOKENS[:3], seq_ids=[2, 0, 1], want="all")
    for row, i in enumerate([2, 0, 1]):
        alone = model.context(n_ctx=256)
        alone.decode(TOKENS[i * 40 :][: 20 + i])
        assert normalised_square(together[row], alone.decode([TOKENS[row]])[0]) <= 1e-6


def test_a_fork_shares_what_came_before_and_goes_its_own_way(model):
    context = model.context(n_ctx=512, n_seq_max=2)
    context.decode(TOKENS[:70])
    used = context.memory.stats()["pages_used"]
    context.memory.seq_cp(0, 1)
    assert context.memory.stats()["pages_used"] == used
    left, right = (context.decode(TOKENS[a:b], seq_ids=i) for i, a, b in ((0, 70, 75), (1, 80, 90)))
    plain = model.context(n_ctx=256)
    plain.decode(TOKENS[:70])
    assert normalised_square(left, plain.decode(TOKENS[70:75])) <= 1e-6
    plain.memory.seq_rm(0, 70)
    assert normalised_square(right, plain.decode(TOKENS[80:90])) <= 1e-6


def test_what_was_removed_is_forgotten(model):
    context = model.context(n_ctx=256)
    context.decode(TOKENS[:60])
    context.memory.seq_rm(0, 33)
    found = context.decode(TOKENS[100:110])
    fresh = model.context(n_ctx=256)
    expected = fresh.decode([*TOKENS[:33], *TOKENS[100:110]])
    assert normalised_square(found, expected) <= 1e-6


def test_moved_keys_are_turned(model):
    """Rotary positions are relative: a sequence moved as a whole answers as before."""
    still, moved = model.context(n_ctx=256), model.context(n_ctx=256)
    for context in (still, moved):
        context.decode(TOKENS[:40])
    moved.memory.seq_add(0, 0, -1, 100)
    assert moved.memory.seq_pos_min(0) == 100
    found, expected = (c.decode(TOKENS[40:60], want="all") for c in (moved, still))
    assert normalised_square(found, expected) <= 1e-5
    unturned = model.context(n_ctx=256)
    unturned.decode(TOKENS[:40])
    unturned.memory.seq_add(0, 0, -1, 100)
    unturned.memory.pools[0].settle_shifts()
    assert normalised_square(unturned.decode(TOKENS[40:60], want="all"), expected) > 1e-3


def test_a_full_context_is_refused_and_nothing_has_changed(model):
    context = model.context(n_ctx=256)
    context.decode(TOKENS[:250])
    with pytest.raises(ContextFullError, match="256"):
        context.decode(TOKENS[:7])
    assert context.memory.seq_pos_max(0) == 249
    context.decode(TOKENS[:6])


def test_a_failure_in_the_middle_forgets_the_batch(model, monkeypatch):
    context = model.context(n_ctx=256, n_ubatch=32)
    context.decode(TOKENS[:40])
    run, calls = context._team.run, []

    def failing(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise InternalError("planted")
        return run(*arguments)

    monkeypatch.setattr(context._team, "run", failing)
    with pytest.raises(InternalError, match="planted"):
        context.decode(TOKENS[40:140])
    monkeypatch.undo()
    assert context.memory.seq_pos_max(0) == 39
    expected = model.context(n_ctx=256).decode(TOKENS[:50])
    assert normalised_square(context.decode(TOKENS[40:50]), expected) <= 1e-6


def test_an_aborted_decode_says_so(model):
    context = model.context(n_ctx=256)
    context.abort()
    with pytest.raises(RequestError, match="stopped"):
        context.decode(TOKENS[:40])
    assert context.memory.seq_pos_max(0) == -1
    context.decode(TOKENS[:40])


def test_hidden_states_give_the_logits(model):
    context = model.context(n_ctx=256)
    logits = context.decode(TOKENS[:30], want="all")
    rows = context.embed(TOKENS[:30])
    head = model.tensors["output.weight"].array().view(np.float32)
    assert normalised_square(rows @ head.T, logits) <= 1e-6
    assert context.memory.seq_pos_max(0) == 29


def test_poolings(model, tmp_path):
    context = model.context(n_ctx=256)
    rows = context.embed(TOKENS[:30])
    pooled = {"mean": rows.mean(0), "cls": rows[0], "last": rows[-1]}
    for kind, expected in pooled.items():
        found = context.embed(TOKENS[:30], pooling=kind)
        assert found.shape == (1, 256) and normalised_square(found[0], expected) <= 1e-6
    assert np.array_equal(context.embed(TOKENS[:30], pooling="none"), rows)
    for wrong, reason in (("meen", "mean"), ("rank", "head for ranking")):
        with pytest.raises(RequestError, match=reason):
            context.embed(TOKENS[:30], pooling=wrong)


def test_a_model_may_bring_its_own_pooling(tmp_path):
    recipe = read_recipe("llama-dense")
    recipe["kv"]["llama.pooling_type"] = ["UINT32", 3]
    with (
        Model.load(write_model(recipe, tmp_path / "last.gguf")) as model,
        model.context(n_ctx=256) as context,
    ):
        own, rows = context.embed(TOKENS[:30]), context.embed(TOKENS[:30], pooling="none")
        assert own.shape == (1, 256) and normalised_square(own[0], rows[-1]) <= 1e-6
    recipe["kv"]["llama.pooling_type"] = ["UINT32", 9]
    with pytest.raises(ModelFileError, match="pooling_type"):
        Model.load(write_model(recipe, tmp_path / "wrong.gguf"))


def test_several_contexts_run_on_one_model(model):
    first, second = model.context(n_ctx=256), model.context(n_ctx=512)
    a = first.decode(TOKENS[:20])
    b = second.decode(TOKENS[20:40])
    assert normalised_square(first.decode([5]), second.decode([5])) > 1e-6
    assert a.shape == b.shape == (1, 128)


def test_a_closed_context_refuses(model):
    context = model.context(n_ctx=256)
    context.close()
    context.close()
    with pytest.raises(InternalError, match="closed"):
        context.decode([1])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"n_ctxx": 5}, "n_ctx"),
        ({"type_k": "q8"}, "q8_0"),
        ({"type_k": "q9"}, "q9"),
        ({"n_seq_max": 0}, "n_seq_max"),
        ({"n_ctx": 1 << 30}, "memory"),
    ],
)
def test_options_that_cannot_be_honoured(model, options, reason):
    from engine.errors import EngineError

    with pytest.raises(EngineError, match=reason):
        model.context(**options)


@pytest.mark.parametrize("moment", ["before", "during"])
def test_an_abort_never_leaves_keys_unturned(model, moment, monkeypatch):
    """What moved is turned whole; the decode that follows is the one that stops."""
    with model.context(n_ctx=256, n_threads=2) as context:
        context.decode(TOKENS[:90])
        context.memory.seq_rm(0, 10, 40)
        context.memory.seq_add(0, 40, -1, -30)
        snapshot = context.snapshot_sequence(0)
        expected = context.decode(TOKENS[90:95], want="all")
        context.restore_snapshot(snapshot, 0)
        snapshot.release()
        context.memory.seq_rm(0)
        context.decode(TOKENS[:90])
        context.memory.seq_rm(0, 10, 40)
        context.memory.seq_add(0, 40, -1, -30)
        run, n_runs = context._team.run, []

        def aborting(tape, n_threads=None):
            n_runs.append(1)
            if len(n_runs) == 1 and moment == "during":
                context.abort()
            return run(tape, n_threads)

        monkeypatch.setattr(context._team, "run", aborting)
        if moment == "before":
            context.abort()
        with pytest.raises(RequestError, match="stopped"):
            context.decode(TOKENS[90:95])
        assert np.array_equal(context.decode(TOKENS[90:95], want="all"), expected)
        context.abort()
        context.forget_abort()
        context.decode(TOKENS[95:96])
