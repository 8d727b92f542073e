"""Row kernels against their NumPy twins, at lengths that are no multiple of a vector."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.compute.cpu import signatures
from engine.native import objects
from engine.native.buffers import address, aligned, f32_bits
from tests.make.attention import run_all
from tests.reference import attention as rope_twin
from tests.reference import pointwise as twin

LENGTHS = [1, 3, 8, 15, 16, 17, 33, 64, 172, 1024, 2500]
GUARD = 777.0


@pytest.fixture(scope="module")
def kernels():
    return objects.load(["pointwise"])


class Rows:
    """A buffer of rows with guard values between them, which a kernel must leave alone."""

    def __init__(self, rng, n_rows, n, gap=5):
        self.n = n
        self.buffer = np.full((n_rows + 1, n + gap), GUARD, np.float32)
        self.values = self.buffer[:n_rows, :n]
        self.values[:] = rng.standard_normal((n_rows, n))
        self.ld = self.buffer.strides[0]
        self.address = address(self.buffer)

    def check(self):
        assert (self.buffer[:, self.n :] == GUARD).all() and (self.buffer[-1] == GUARD).all()


class Case:
    """x, y and out rows of one length, and what the kernel made of them."""

    def __init__(self, kernels, n, n_rows=5, seed=0):
        self.kernels, self.n, self.n_rows = kernels, n, n_rows
        self.rng = np.random.default_rng(seed)
        self.x, self.y, self.out = (Rows(self.rng, n_rows, n) for _ in range(3))
        self.batch = np.array([n_rows, 0, 0, 0, 0], np.int64)

    def run(self, name, out=None, n_threads=3, **words):
        out = out or self.out
        known = {
            "n_rows": signatures.count_address(self.batch, "n_tokens"),
            "x": self.x.address,
            "ldx": self.x.ld,
            "y": self.y.address,
            "ldy": self.y.ld,
            "n": self.n,
            "out": out.address,
            "ldo": out.ld,
            **words,
        }
        names = signatures.words(f"pointwise/{name}")
        block = signatures.pack(f"pointwise/{name}", **{k: known[k] for k in names})
        run_all(self.kernels, f"pointwise/{name}", block, n_threads)
        for rows in (self.x, self.y, self.out):
            rows.check()
        return out.values.astype(np.float64)


def close(got, wanted, tolerance=2e-6):
    assert np.abs(got - wanted).max() <= tolerance * max(1.0, np.abs(wanted).max())


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("kind", ["rms_norm", "layer_norm"])
@pytest.mark.parametrize(("weighted", "biased"), [(0, 0), (1, 0), (1, 1)])
def test_norms(kernels, kind, n, weighted, biased):
    case = Case(kernels, n)
    case.x.values[:] += 0.5
    weight, bias = (case.rng.standard_normal(n).astype(np.float32) for _ in range(2))
    words = {
        "n_groups": 1,
        "group_stride": 0,
        "weight": address(weight) if weighted else 0,
        "bias": address(bias) if biased else 0,
        "eps": f32_bits(1e-5),
    }
    x = case.x.values.astype(np.float64)
    wanted = getattr(twin, kind)(x, weight if weighted else 1, bias if biased else 0, 1e-5)
    close(case.run(kind, **words), wanted, 1e-5)
    close(case.run(kind, out=case.x, **words), wanted, 1e-5)


def test_norms_of_groups(kernels):
    case = Case(kernels, 12)
    case.x, case.out = Rows(case.rng, 5, 36), Rows(case.rng, 5, 36)
    weight = case.rng.standard_normal((3, 12)).astype(np.float32)
    x = case.x.values.astype(np.float64).reshape(5, 3, 12)
    for stride, w in ((48, weight), (0, weight[0])):
        words = {"n_groups": 3, "group_stride": stride, "weight": address(weight), "bias": 0}
        got = case.run("rms_norm", eps=f32_bits(1e-6), **words).reshape(5, 3, 12)
        close(got, twin.rms_norm(x, w, 0, 1e-6))


@pytest.mark.parametrize("n", LENGTHS)
def test_post_norm_add(kernels, n):
    case = Case(kernels, n)
    weight = case.rng.standard_normal(n).astype(np.float32)
    x, y = case.x.values.astype(np.float64), case.y.values.astype(np.float64)
    case.run("post_norm_add", weight=address(weight), eps=f32_bits(1e-6))
    close(case.x.values, x + twin.rms_norm(y, weight, 0, 1e-6), 1e-5)


@pytest.mark.parametrize("n", LENGTHS)
def test_two_operands_and_constants(kernels, n):
    case = Case(kernels, n)
    x, y = case.x.values.astype(np.float64), case.y.values.astype(np.float64)
    assert np.array_equal(case.run("add"), (case.x.values + case.y.values))
    assert np.array_equal(case.run("multiply"), (case.x.values * case.y.values))
    close(case.run("add", ldy=0), x + y[:1])
    close(case.run("multiply", ldy=0), x * y[:1])
    close(case.run("scale", factor=f32_bits(0.75)), x * 0.75)
    close(case.run("softcap", cap=f32_bits(0.7)), 0.7 * np.tanh(x / 0.7))
    close(case.run("add", out=case.x), x + y)


def test_softcap_of_extremes(kernels):
    case = Case(kernels, 40)
    case.x.values[:] *= 1e4
    wanted = 30 * np.tanh(case.x.values.astype(np.float64) / 30)
    close(case.run("softcap", cap=f32_bits(30.0)), wanted)


@pytest.mark.parametrize("kind", signatures.ACTIVATIONS)
@pytest.mark.parametrize("n", [7, 48, 172, 1100])
def test_activations(kernels, kind, n):
    case = Case(kernels, n)
    case.x.values[:] *= 4
    case.x.values[0, 0], case.x.values[1, 0] = -200.0, 200.0
    index = signatures.ACTIVATIONS.index(kind)
    words = {"activation": index, "gate": case.x.address, "ldg": case.x.ld, "ldu": case.y.ld}
    gate, up = case.x.values.astype(np.float64), case.y.values.astype(np.float64)
    with np.errstate(over="ignore"):
        wanted = twin.ACTIVATIONS[kind]
        close(case.run("activate", up=case.y.address, **words), wanted(gate, up), 1e-6)
        if kind != "swiglu_oai":
            close(case.run("activate", up=0, **words), wanted(gate, 1.0), 1e-6)


def test_gather(kernels):
    case = Case(kernels, 19)
    rows = np.array([4, 0, 4, 2], np.int32)
    case.batch[3:] = len(rows), address(rows)
    got = case.run("gather", batch=address(case.batch))
    assert np.array_equal(got[:4], case.x.values[rows])
    case.batch[3] = 0
    case.out.values[:] = 1
    assert (case.run("gather", batch=address(case.batch)) == 1).all()


def test_clear(kernels):
    counters = np.full(20, 9, np.int64)
    block = signatures.pack("pointwise/clear", counters=address(counters), n_words=16)
    run_all(kernels, "pointwise/clear", block, 2)
    assert not counters[:16].any() and (counters[16:] == 9).all()


@pytest.mark.parametrize("neox", [0, 1])
@pytest.mark.parametrize("n_rot", [2, 8, 20, 64])
def test_rope_table(kernels, neox, n_rot):
    positions = np.array([0, 1, 77, 131071], np.int32)
    inv_freq = 10000.0 ** (-np.arange(0, n_rot, 2) / n_rot)
    batch = np.array([4, 0, address(positions), 0, 0], np.int64)
    table = np.full((5, 2, n_rot), GUARD, np.float32)
    block = signatures.pack(
        "pointwise/rope_table",
        batch=address(batch),
        inv_freq=address(inv_freq),
        n_rot=n_rot,
        magnitude=f32_bits(1.5),
        neox=neox,
        table=address(table),
    )
    run_all(kernels, "pointwise/rope_table", block, 3)
    assert (table[4] == GUARD).all()
    x = np.random.default_rng(0).standard_normal((4, 1, n_rot)).astype(np.float32)
    lanes = np.arange(n_rot)
    partner = (lanes + n_rot // 2) % n_rot if neox else lanes ^ 1
    got = x * table[:4, :1] + x[..., partner] * table[:4, 1:]
    close(got, rope_twin.rope(x, positions, inv_freq, neox, 1.5))


@settings(max_examples=60, deadline=None)
@given(
    gating=st.sampled_from(signatures.GATINGS),
    shape=st.sampled_from([(4, 2, 1, 1), (8, 8, 1, 1), (60, 6, 1, 1), (64, 8, 8, 4), (6, 1, 3, 2)]),
    biased=st.booleans(),
    normalise=st.booleans(),
    seed=st.integers(0, 99),
)
def test_router(kernels, gating, shape, biased, normalise, seed):
    n_expert, n_used, n_group, n_group_used = shape
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((5, n_expert)).astype(np.float32)
    bias = rng.standard_normal(n_expert).astype(np.float32) if biased else None
    groups = (n_group, n_group_used)
    ids, weights = twin.router(logits, n_used, gating, bias, normalise, 2.5, groups)
    got_ids = np.full((5, n_used + 1), -7, np.int32)
    got = np.full((5, n_used + 1), GUARD, np.float32)
    batch = np.array([5, 0, 0, 0, 0], np.int64)
    block = signatures.pack(
        "pointwise/router",
        n_rows=signatures.count_address(batch, "n_tokens"),
        logits=address(logits),
        ldl=logits.strides[0],
        n_expert=n_expert,
        n_used=n_used,
        gating=signatures.GATINGS.index(gating),
        bias=0 if bias is None else address(bias),
        normalise=normalise,
        scale=f32_bits(2.5),
        n_group=n_group,
        n_group_used=n_group_used,
        ids=address(got_ids),
        ldi=got_ids.strides[0],
        weights=address(got),
        ldw=got.strides[0],
    )
    run_all(kernels, "pointwise/router", block, 2)
    assert np.array_equal(got_ids[:, :n_used], ids) and (got_ids[:, n_used:] == -7).all()
    close(got[:, :n_used], weights, 1e-5)
    assert (got[:, n_used:] == GUARD).all()


def test_router_stays_in_range_with_nan(kernels):
    logits = np.full((1, 6), np.nan, np.float32)
    ids, weights = np.full((1, 4), -7, np.int32), np.zeros((1, 4), np.float32)
    batch = np.array([1, 0, 0, 0, 0], np.int64)
    words = dict.fromkeys(signatures.words("pointwise/router"), 0)
    words |= {"n_rows": signatures.count_address(batch, "n_tokens"), "n_expert": 6, "n_used": 4}
    words |= {"logits": address(logits), "ids": address(ids), "weights": address(weights)}
    for gating in range(len(signatures.GATINGS)):
        block = signatures.pack("pointwise/router", **words | {"gating": gating})
        run_all(kernels, "pointwise/router", block, 1)
        assert ((ids >= 0) & (ids < 6)).all()


@pytest.mark.parametrize("n", [5, 64, 1030])
def test_combine(kernels, n):
    case = Case(kernels, n)
    parts = case.rng.standard_normal((5, 3, n)).astype(np.float32)
    weights = case.rng.standard_normal((5, 4)).astype(np.float32)
    words = {"y": address(parts), "ldy": parts.strides[0], "lde": parts.strides[1], "n_used": 3}
    words |= {"weights": address(weights), "ldw": 16}
    wanted = np.einsum("te,ten->tn", weights[:, :3].astype(np.float64), parts)
    before = case.out.values.astype(np.float64)
    close(case.run("combine", add=1, **words), before + wanted)
    close(case.run("combine", add=0, **words), wanted)


def test_copy_pages(kernels):
    rng = np.random.default_rng(1)
    k, v = (rng.integers(0, 256, (2, 6, n), dtype=np.uint8) for n in (128, 100))
    wanted = [x.copy() for x in (k, v)]
    pairs = np.array([[0, 3], [5, 1]], np.int32)
    for x in wanted:
        x[:, pairs[:, 1]] = x[:, pairs[:, 0]]
    layers = np.array(
        [[address(k[i]), k[i, 0].nbytes, address(v[i]), v[i, 0].nbytes] for i in range(2)], np.int64
    )
    words = {"n_pairs": 2, "pairs": address(pairs), "n_layers": 2, "layers": address(layers)}
    run_all(kernels, "pointwise/copy_pages", signatures.pack("pointwise/copy_pages", **words), 3)
    assert np.array_equal(k, wanted[0]) and np.array_equal(v, wanted[1])


def test_no_rows_is_no_work(kernels):
    case = Case(kernels, 33)
    case.batch[0] = 0
    before = case.out.values.copy()
    for name in ("add", "multiply"):
        assert np.array_equal(case.run(name), before)


def test_aligned_rows_are_the_same(kernels):
    case = Case(kernels, 64)
    buffer = aligned((5, 64), np.float32)
    buffer[:] = case.x.values
    wanted = case.run("scale", factor=f32_bits(3.0))
    got = case.run("scale", x=address(buffer), ldx=256, factor=f32_bits(3.0))
    assert np.array_equal(got, wanted)
