"""Store and shift against their NumPy twins: cells filled, rotated, moved, and nothing else."""

import numpy as np
import pytest

from engine.compute.cpu import signatures
from engine.native import objects
from engine.native.buffers import address, aligned
from tests.make.attention import UNIT, Attend, Store, close, run_all
from tests.make.paged import Paged
from tests.reference import attention as twin


@pytest.fixture(scope="module")
def kernels():
    return objects.load([UNIT, "pointwise"])


@pytest.mark.parametrize("neox", [0, 1])
@pytest.mark.parametrize(("size_k", "size_v", "n_rot"), [(64, 64, 64), (8, 8, 8), (80, 40, 32)])
@pytest.mark.parametrize("sequences", [[(7, 1)], [(20, 37), (0, 3)]], ids=str)
def test_store_fills_cells(kernels, neox, size_k, size_v, n_rot, sequences):
    rng = np.random.default_rng(5)
    paged = Paged(rng, sequences, 2, size_k, size_v)
    store = Store(paged, 6, rng)
    inv_freq = 10000.0 ** (-np.arange(0, n_rot, 2) / n_rot)
    before = paged.k_pages.copy(), paged.v_pages.copy()
    q, wanted_q, wanted_k = store.run(kernels, inv_freq, neox, magnitude=1.25)
    assert np.abs(q - wanted_q).max() < 2e-5
    for t, cell in enumerate(paged.flat_cells):
        k, v = paged.read_k(cell), paged.read_v(cell)
        assert np.abs(k[:, :size_k] - wanted_k[t]).max() < 4e-3
        assert np.array_equal(v[:, :size_v], store.v[t].astype(np.float16))
        assert not k[:, size_k:].any() and not v[:, size_v:].any(), "padding is not zero"
    for pages, old in zip((paged.k_pages, paged.v_pages), before, strict=True):
        n_changed = (pages != old).sum()
        assert n_changed <= paged.n_tokens * pages[0].size // 32, "wrote outside its cells"


def test_store_without_norm_or_rope_copies(kernels):
    rng = np.random.default_rng(6)
    paged = Paged(rng, [(0, 18)], 1, 32, 32)
    store = Store(paged, 2, rng)
    q, _, _ = store.run(kernels, normed=False)
    assert np.array_equal(q, store.q)
    for t, cell in enumerate(paged.flat_cells):
        assert np.array_equal(paged.read_k(cell), store.k[t].astype(np.float16))


@pytest.mark.parametrize("neox", [0, 1])
def test_shift_equals_storing_at_the_other_position(kernels, neox):
    rng = np.random.default_rng(7)
    n, size, n_rot, delta = 70, 48, 32, -11
    inv_freq = 1000.0 ** (-np.arange(0, n_rot, 2) / n_rot)
    paged = Paged(rng, [(0, n)], 2, size, size)
    store = Store(paged, 2, rng)
    store.run(kernels, inv_freq, neox, normed=False)
    deltas = np.where(paged.page_positions[paged.pages[0]] >= 20, delta, 0).astype(np.int32)
    scratch = aligned(signatures.shift_scratch_bytes(size) * 3, np.uint8)
    words = paged.page_words()
    block = signatures.pack(
        f"{UNIT}/shift",
        n_pages=len(paged.pages[0]),
        pages=address(paged.pages[0]),
        deltas=address(deltas),
        n_head_kv=2,
        head_size_k=size,
        inv_freq=address(inv_freq),
        n_rot=n_rot,
        neox=neox,
        k_base=words["k_base"],
        k_page_bytes=words["k_page_bytes"],
        scratch=address(scratch),
        scratch_stride=signatures.shift_scratch_bytes(size),
    )
    run_all(kernels, f"{UNIT}/shift", block, 3)
    moved = np.where(np.arange(n) >= 20, np.arange(n) + delta, np.arange(n))
    wanted = twin.rope(store.k, moved, inv_freq, neox)
    for t, cell in enumerate(paged.flat_cells):
        assert np.abs(paged.read_k(cell) - wanted[t]).max() < 8e-3
    unmoved = paged.read_k(paged.flat_cells[3]).copy()
    run_all(kernels, f"{UNIT}/shift", block, 1)
    assert np.array_equal(paged.read_k(paged.flat_cells[3]), unmoved)


def test_store_then_attend_is_the_twin(kernels):
    rng = np.random.default_rng(8)
    paged = Paged(rng, [(33, 20), (0, 1)], 2, 64, 64, holes=0.2)
    store = Store(paged, 6, rng)
    inv_freq = 10000.0 ** (-np.arange(0, 64, 2) / 64)
    q, _, _ = store.run(kernels, inv_freq, 1)
    for i, rows in enumerate(paged.rows):
        n_past = len(paged.positions[i]) - (rows.stop - rows.start)
        for t in range(rows.start, rows.stop):
            cell = paged.flat_cells[t]
            paged.k[i][n_past + t - rows.start] = paged.read_k(cell)
            paged.v[i][n_past + t - rows.start] = paged.read_v(cell)
    attend = Attend(paged, 6)
    attend.q[:] = q
    close(attend.whole(kernels), attend.expected())
    close(attend.split(kernels), attend.expected())
