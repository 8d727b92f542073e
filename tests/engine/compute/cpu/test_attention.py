"""Attention kernels against their NumPy twin: layouts, windows, garbage, splits, shapes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.compute.cpu import signatures
from engine.native import objects
from tests.make.attention import UNIT, Attend, close
from tests.make.paged import Paged


@pytest.fixture(scope="module")
def kernels():
    return objects.load([UNIT, "pointwise"])


SHAPES = [
    # n_head, n_head_kv, size_k, size_v
    (9, 3, 64, 64),
    (4, 1, 256, 256),
    (8, 8, 8, 8),
    (16, 1, 16, 16),
    (20, 2, 80, 80),
    (6, 3, 96, 64),
    (5, 1, 40, 24),
    (4, 2, 128, 112),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("sequences", [[(0, 5)], [(70, 1)], [(40, 13), (3, 1)]], ids=str)
def test_shapes(kernels, shape, sequences):
    n_head, n_head_kv, size_k, size_v = shape
    paged = Paged(np.random.default_rng(1), sequences, n_head_kv, size_k, size_v).fill()
    attend = Attend(paged, n_head)
    wanted = attend.expected()
    close(attend.whole(kernels), wanted)
    close(attend.split(kernels), wanted)


@settings(max_examples=40, deadline=None)
@given(
    sequences=st.lists(st.tuples(st.integers(0, 200), st.integers(1, 14)), min_size=1, max_size=5),
    n_head_kv=st.sampled_from([1, 2, 3]),
    group=st.sampled_from([1, 2, 3, 4, 5, 8, 13, 16]),
    window=st.sampled_from([0, 1, 7, 32, 100]),
    holes=st.sampled_from([0.0, 0.3, 0.95]),
    softcap=st.sampled_from([0.0, 2.0]),
    has_sinks=st.booleans(),
    n_threads=st.integers(1, 7),
    gap=st.integers(1, 3),
)
def test_any_batch(
    kernels, sequences, n_head_kv, group, window, holes, softcap, has_sinks, n_threads, gap
):
    rng = np.random.default_rng(sum(a * 17 + b for a, b in sequences))
    paged = Paged(rng, sequences, n_head_kv, 24, 20, holes, gap=gap).fill()
    n_head = n_head_kv * group
    sinks = rng.standard_normal(n_head).astype(np.float32) * 3 if has_sinks else None
    attend = Attend(paged, n_head, n_threads, window=window, softcap=softcap, sinks=sinks)
    wanted = attend.expected()
    close(attend.whole(kernels), wanted)
    close(attend.split(kernels), wanted)


def test_long_context(kernels):
    paged = Paged(np.random.default_rng(2), [(3000, 1), (10, 2), (1000, 3)], 2, 32, 32).fill()
    attend = Attend(paged, 6, n_threads=4)
    close(attend.split(kernels), attend.expected())
    windowed = Attend(paged, 6, n_threads=4, window=50)
    close(windowed.split(kernels), windowed.expected())
    close(windowed.whole(kernels), windowed.expected())


def test_a_row_that_sees_nothing_answers_zero(kernels):
    paged = Paged(np.random.default_rng(3), [(40, 2)], 1, 16, 16).fill()
    paged.page_positions[:] = -1
    attend = Attend(paged, 3)
    assert (attend.whole(kernels) == 0).all()
    assert (attend.split(kernels) == 0).all()


def test_a_row_without_cells_answers_zero_beside_one_with(kernels):
    paged = Paged(np.random.default_rng(3), [(40, 2)], 1, 16, 16).fill()
    paged.page_positions.reshape(-1)[paged.flat_cells[0]] = -1
    attend = Attend(paged, 3, window=1)
    for answer in (attend.whole(kernels), attend.split(kernels)):
        assert (answer[0] == 0).all()
        assert np.allclose(answer[1], paged.v[0][41])


def test_an_empty_batch_touches_nothing(kernels):
    paged = Paged(np.random.default_rng(3), [(40, 2)], 1, 16, 16).fill()
    paged.pool[signatures.N_RUNS] = 0
    attend = Attend(paged, 3)
    assert (attend.whole(kernels) == 3.5).all()
    assert (attend.split(kernels) == 3.5).all()


@pytest.mark.parametrize(("k", "v"), [("f32", "f32"), ("f16", "f32")])
def test_other_cache_types(k, v):
    unit = f"attention.{k}.{v}"
    kernels = objects.load([unit])
    rng = np.random.default_rng(9)
    paged = Paged(rng, [(70, 9), (5, 1)], 2, 48, 40, holes=0.2, stored=(k, v)).fill()
    attend = Attend(paged, 6)
    close(attend.whole(kernels, unit), attend.expected())
    close(attend.split(kernels, unit), attend.expected())


def test_large_scores_do_not_overflow(kernels):
    paged = Paged(np.random.default_rng(4), [(64, 3)], 1, 64, 64).fill()
    attend = Attend(paged, 3)
    attend.q *= 300
    wanted = attend.expected()
    assert np.abs(attend.whole(kernels) - wanted).max() < 1e-3
    assert np.abs(attend.split(kernels) - wanted).max() < 1e-3
