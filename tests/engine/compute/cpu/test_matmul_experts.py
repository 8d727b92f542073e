"""Products with chosen experts, against one plain product per pair."""

import numpy as np
import pytest

from engine.compute.cpu import signatures
from engine.native import buffers, objects
from tests.make import weights
from tests.reference import matmul as twin

N_EXPERT, N_OUT = 5, 37


@pytest.fixture(scope="module")
def kernels():
    return objects.load(["experts.q4_0", "experts.f32"])


@pytest.mark.parametrize("name, n_in", [("q4_0", 64), ("q4_0", 320), ("f32", 50)])
@pytest.mark.parametrize("n_rows, n_used", [(1, 2), (1, 5), (7, 2), (23, 3)])
@pytest.mark.parametrize("has_parts, bias, add", [(False, True, False), (True, False, True)])
def test_each_pair_is_the_product_with_its_expert(
    kernels, name, n_in, n_rows, n_used, has_parts, bias, add
):
    rng = np.random.default_rng(1)
    raw, w = weights.matrix(name, N_EXPERT * N_OUT, n_in)
    w = w.reshape(N_EXPERT, N_OUT, n_in)
    raw = np.ascontiguousarray(raw)
    n_parts = n_used if has_parts else 1
    x, x2 = (rng.standard_normal((n_rows, n_parts, n_in)).astype(np.float32) for _ in range(2))
    ids = np.stack([rng.permutation(N_EXPERT)[:n_used] for _ in range(n_rows)]).astype(np.int32)
    biases = rng.standard_normal((N_EXPERT, N_OUT)).astype(np.float32)
    y = rng.standard_normal((n_rows, n_used, N_OUT)).astype(np.float32)
    before = y.copy() if add else np.zeros_like(y)
    count, counter = np.array([n_rows], np.int64), buffers.aligned(8, np.int64)
    stride = signatures.matmul_scratch_bytes(n_in, n_rows)
    n_threads = 3
    scratch = buffers.aligned(n_threads * stride, np.uint8)
    scratch[:] = 0xFF
    a, kernel = buffers.address, f"experts.{name}/product"
    block = signatures.pack(
        kernel,
        **{"n_rows": a(count), "n_used": n_used, "ids": a(ids), "ldi": ids.strides[0]},
        **{"transform": signatures.TRANSFORMS.index("silu"), "x": a(x), "ldx": x.strides[0]},
        **{"x2": a(x2), "ldx2": x2.strides[0], "norm": 0, "eps": 0},
        **{"slot_x": 4 * n_in if has_parts else 0, "w": a(raw), "row_bytes": raw.shape[1]},
        **{"n_in": n_in, "n_out": N_OUT, "expert_bytes": raw.shape[1] * N_OUT},
        **{"n_expert": N_EXPERT, "bias": a(biases) if bias else 0, "bias_bytes": 4 * N_OUT},
        **{"add": int(add), "y": a(y), "ldy": y.strides[0], "slot_y": 4 * N_OUT},
        **{"scratch": a(scratch), "scratch_stride": stride, "counter": a(counter)},
    )
    for thread in (2, 0, 1):
        kernels.call(kernel, block, thread, n_threads)
    for t in range(n_rows):
        for i in range(n_used):
            part = (t, i if has_parts else 0)
            row = twin.transformed("silu", x[part], x2[part])[None]
            if name == "q4_0":
                row = twin.quantized(row, 32)
            offset = biases[ids[t, i]] if bias else None
            expected = twin.product(w[ids[t, i]], row, offset, before[t, i])[0]
            np.testing.assert_allclose(y[t, i], expected, rtol=1e-3, atol=2e-3 * n_in**0.5)
