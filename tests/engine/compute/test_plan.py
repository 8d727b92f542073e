"""A plan reads what was written, shares no place between living buffers, and lets threads meet."""

import numpy as np
import pytest

from engine.compute.cpu.arena import Buffer, Touch, barriers_after, place_buffers
from engine.compute.cpu.places import row_kind
from engine.compute.cpu.plan import plan_calls
from engine.compute.cpu.signatures import FEW_ROWS, MULTI_ROWS, words
from engine.compute.cpu.tape import Counter
from engine.compute.cpu.workspace import LayerPages, Workspace
from engine.gguf import GGUF
from engine.hparams import read_hparams
from engine.models import build_graph, describe_layers, find_architecture
from tests.make.architecture import read_recipe, recipe_names, write_model

KINDS = [
    ("one", "none"),
    ("one", "one"),
    ("few", "none"),
    ("few", "one"),
    ("few", "few"),
    ("many", "none"),
    ("many", "one"),
    ("many", "few"),
    ("many", "many"),
]


@pytest.fixture(params=recipe_names())
def planned(request, tmp_path):
    path = write_model(read_recipe(request.param), tmp_path / "model.gguf")
    with GGUF.open(path) as file:
        hparams = read_hparams(file.metadata, file.tensors["token_embd.weight"].shape[1])
        spec = find_architecture(hparams.arch)
        layers = describe_layers(spec, hparams)
        graph = build_graph(spec, hparams, layers, file.tensors)
        pages = [
            LayerPages(0, one.n_head_kv, one.head_size_k, one.head_size_v, one.window, *_PLACES)
            for one in layers
        ]
        yield graph, Workspace(graph, file.tensors, pages, [0], 64, 2)


_PLACES = ("f16.f16", 0, 0, 0, 0)


@pytest.mark.parametrize("kinds", KINDS)
def test_plans_of_every_row_kind_hold_together(planned, kinds):
    graph, workspace = planned
    calls = plan_calls(graph, workspace, *kinds)
    touches = [call.touch for call in calls]
    n_bytes = place_buffers(touches)
    _check_words(calls)
    _check_contents(touches, n_bytes)
    _check_meetings(touches)


def _check_words(calls):
    for call in calls:
        assert sorted(call.words) == sorted(words(call.kernel))
        named = {w for w in call.words.values() if isinstance(w, Buffer)}
        assert named == {w for w in (*call.touch.reads, *call.touch.writes) if _is_buffer(w)}


def _is_buffer(thing):
    return isinstance(thing, Buffer)


def _check_contents(touches, n_bytes):
    """Write each buffer's name into its bytes, and look for it when the buffer is read."""
    owner = np.zeros(n_bytes, object)
    for touch in touches:
        for one in filter(_is_buffer, touch.reads):
            assert (owner[one.start : one.start + one.n_bytes] == id(one)).all()
        for one in filter(_is_buffer, touch.writes):
            assert 0 <= one.start and one.start + one.n_bytes <= n_bytes
            owner[one.start : one.start + one.n_bytes] = id(one)


def _check_meetings(touches):
    """No op may touch what another op between the same two meetings writes."""
    group = []
    for touch, meets in zip(touches, barriers_after(touches), strict=True):
        group.append(touch)
        if meets:
            _check_group(group)
            group = []
    _check_group(group)


def _check_group(group):
    for i, one in enumerate(group):
        for other in group[i + 1 :]:
            for written, touched in (
                (one.writes, (*other.reads, *other.writes)),
                (other.writes, one.reads),
            ):
                assert not any(_meet(a, b) for a in written for b in touched)


def _meet(a, b):
    if _is_buffer(a) and _is_buffer(b):
        return max(a.start, b.start) < min(a.start + a.n_bytes, b.start + b.n_bytes)
    return a == b


def test_without_outputs_the_last_layer_ends_at_its_keys(planned):
    graph, workspace = planned
    calls = plan_calls(graph, workspace, "many", "none")
    assert calls[-1].kernel.endswith("/store")
    assert calls[-1].words["n_head"] == 0


def test_products_add_to_their_residual_in_place(planned):
    graph, workspace = planned
    kernels = [call.kernel for call in plan_calls(graph, workspace, "one", "one")]
    assert "pointwise/add" not in kernels


def test_each_call_that_shares_work_has_its_own_counter(planned):
    graph, workspace = planned
    seen = set()
    for call in plan_calls(graph, workspace, "many", "many"):
        counters = [w for w in call.words.values() if isinstance(w, Counter)]
        assert len(counters) <= 1 and not seen & set(map(id, counters))
        seen |= set(map(id, counters))


def test_row_kinds():
    counts = (0, 1, 2, FEW_ROWS, FEW_ROWS + 1, MULTI_ROWS, MULTI_ROWS + 1, 512)
    kinds = ["none", "one", "few", "few", "some", "some", "many", "many"]
    assert [row_kind(n) for n in counts] == kinds


def test_dead_buffers_give_their_place_up():
    a, b, c, d = (Buffer(64) for _ in range(4))
    n_bytes = place_buffers(
        [Touch((), (a,)), Touch((a,), (b,)), Touch((b,), (c,)), Touch((c,), (d,))]
    )
    assert n_bytes == 128


def test_a_planted_clash_makes_threads_meet():
    a, b = Buffer(64, 0), Buffer(64, 64)
    touches = [Touch((), (a,)), Touch((), (b,)), Touch((a,), (b,))]
    assert barriers_after(touches) == [False, True, False]
