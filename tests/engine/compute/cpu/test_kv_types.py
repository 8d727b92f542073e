"""Every type of K and V: exact blocks; attention, store and shift against their twins."""

import json

import numpy as np
import pytest

from engine.compute.cpu import signatures
from engine.memory.kv_layout import KV_TYPES, page_bytes
from engine.native import objects, units
from engine.native.buffers import address, aligned
from tests.make.architecture import GOLDEN
from tests.make.attention import UNIT, Attend, Store, close, run_all
from tests.make.kv_cells import CELLS
from tests.make.paged import Paged
from tests.reference import attention as twin
from tests.reference import kv_blocks

BLOCKS = [kind for kind, row in KV_TYPES.items() if row.block > 1]
# Largest error of a stored value by the size of the largest value of its block.
STEPS = {"f32": 1e-6, "f16": 1e-3, "bf16": 5e-3, "q8_0": 5e-3, "q5_0": 0.07, "q5_1": 0.04}
STEPS |= {"q4_0": 0.15, "q4_1": 0.08, "iq4_nl": 0.15}


@pytest.fixture(scope="module", params=KV_TYPES)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def kernels(kind):
    return objects.load([f"attention.{kind}.{kind}", "pointwise"])


def test_the_tables_agree():
    assert tuple(KV_TYPES) == units.KV_TYPES
    for kind, row in KV_TYPES.items():
        assert page_bytes(row, 3, 96) == 3 * 32 * CELLS[kind].row_bytes(96)


@pytest.mark.parametrize("kind", BLOCKS)
def test_the_twin_quantizes_as_the_reference(kind):
    golden = json.loads((GOLDEN / "kv_blocks.json").read_text())
    x = np.frombuffer(bytes.fromhex(golden["input"]), np.float32).reshape(-1, 32)
    parts = kv_blocks.quantize(kind, x)
    found = b"".join(kv_blocks.pack(kind, *block) for block in zip(*parts, strict=True))
    assert found.hex() == golden[kind]


@pytest.mark.parametrize("shape", [(9, 3, 64, 64), (5, 1, 96, 32), (16, 2, 128, 256)], ids=str)
def test_attention(kind, kernels, shape):
    n_head, n_head_kv, size_k, size_v = shape
    rng, stored = np.random.default_rng(9), (kind, kind)
    sequences = [(70, 9), (5, 1), (100, 20)]
    paged = Paged(rng, sequences, n_head_kv, size_k, size_v, holes=0.2, stored=stored).fill()
    attend, unit = Attend(paged, n_head, window=50), f"attention.{kind}.{kind}"
    wanted = attend.expected()
    close(attend.whole(kernels, unit), wanted)
    close(attend.split(kernels, unit), wanted)


def test_mixed_types():
    unit, rng = "attention.q8_0.q5_1", np.random.default_rng(9)
    kernels = objects.load([unit])
    paged = Paged(rng, [(70, 9)], 2, 64, 32, stored=("q8_0", "q5_1")).fill()
    attend = Attend(paged, 6)
    close(attend.whole(kernels, unit), attend.expected())


def near(found, wanted, kind):
    """Hold stored values against those that went in, by the largest of each block."""
    found = found[..., : wanted.shape[-1]]
    n = 32 if kind in BLOCKS else wanted.shape[-1]
    blocks = (*wanted.shape[:-1], -1, n)
    error = np.abs(found - wanted).reshape(blocks).max(-1)
    assert (error <= STEPS[kind] * np.abs(wanted).reshape(blocks).max(-1)).all()


def test_store_fills_cells_and_nothing_else(kind, kernels):
    rng = np.random.default_rng(5)
    paged = Paged(rng, [(20, 37), (0, 3)], 2, 96, 64, stored=(kind, kind))
    store, unit = Store(paged, 6, rng), f"attention.{kind}.{kind}"
    before = paged.k_pages.copy(), paged.v_pages.copy()
    store.run(kernels, normed=False, unit=unit)
    ulp = 1.1e-3 if kind == "iq4_nl" else 1e-6  # a fitted scale may round to the next half
    for t, cell in enumerate(paged.flat_cells):
        wanted_k = CELLS[kind].rounded(CELLS[kind].key_as_kept(store.k[t]))
        wanted_v = CELLS[kind].rounded(CELLS[kind].value_as_kept(store.v[t]))
        assert np.allclose(paged.read_k(cell)[:, :96], wanted_k, rtol=ulp, atol=0)
        assert np.allclose(paged.read_v(cell)[:, :64], wanted_v, rtol=ulp, atol=0)
    for pages, old in zip((paged.k_pages, paged.v_pages), before, strict=True):
        n_changed = (pages != old).sum()
        assert n_changed <= paged.n_tokens * pages[0].size // 32, "wrote outside its cells"


def test_zeros_and_one_large_value(kind, kernels):
    paged = Paged(np.random.default_rng(5), [(0, 4)], 1, 32, 32, stored=(kind, kind))
    store = Store(paged, 1, np.random.default_rng(5))
    store.k[:], store.v[:] = 0, 0
    store.k[1, 0, 7], store.v[1, 0, 7] = -300, 1000
    store.k[2], store.v[2] = 5, -5
    store.run(kernels, normed=False, unit=f"attention.{kind}.{kind}")
    for t, cell in enumerate(paged.flat_cells):
        near(paged.read_k(cell), store.k[t], kind)
        near(paged.read_v(cell), store.v[t], kind)


@pytest.mark.parametrize("neox", [0, 1])
@pytest.mark.parametrize("size", [96, 128])
def test_shift_turns_what_moved(kind, kernels, neox, size):
    rng = np.random.default_rng(7)
    n, n_rot, delta = 70, 64, -11
    inv_freq = 1000.0 ** (-np.arange(0, n_rot, 2) / n_rot)
    paged = Paged(rng, [(0, n)], 2, size, size, stored=(kind, kind))
    store, unit = Store(paged, 2, rng), f"attention.{kind}.{kind}"
    store.run(kernels, inv_freq, neox, normed=False, unit=unit)
    before = [paged.read_k(cell) for cell in paged.flat_cells]
    deltas = np.where(paged.page_positions[paged.pages[0]] >= 20, delta, 0).astype(np.int32)
    stride = signatures.shift_scratch_bytes(size)
    scratch, words = aligned(stride * 3, np.uint8), paged.page_words()
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
        scratch_stride=stride,
    )
    run_all(kernels, f"{unit}/shift", block, 3)
    as_kept = CELLS[kind].key_as_kept
    for t, cell in enumerate(paged.flat_cells):
        if t < 20:
            assert np.array_equal(paged.read_k(cell), before[t])
        else:
            turned = as_kept(twin.rope(as_kept(before[t])[None], [delta], inv_freq, neox)[0])
            near(paged.read_k(cell), turned, kind)
