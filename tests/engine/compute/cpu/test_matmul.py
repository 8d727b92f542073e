"""Matmul kernels of every weight type against dequantized weights and plain NumPy."""

import numpy as np
import pytest

from engine.compute.cpu import signatures
from engine.native import buffers, objects, units
from tests.make import weights
from tests.make.products import GUARD, Product, lengths

TYPES = units.MATMUL_TYPES


@pytest.fixture(scope="session")
def kernels():
    return objects.load([*(f"matmul.{name}" for name in TYPES), "matmul.input"])


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("n_out", [1, 37, 128])
def test_gemv(kernels, name, n_out):
    for n_in in lengths(name):
        product = Product(name, n_in, n_out, 1)
        product.run(kernels, "gemv")
        product.check()


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("n_rows", [1, 2, 3, 12, 29])
def test_multi(kernels, name, n_rows):
    for n_in in lengths(name):
        product = Product(name, n_in, 37, n_rows)
        product.run(kernels, "multi")
        product.check()


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("n_rows, n_out", [(1, 128), (5, 37), (13, 64), (32, 130)])
def test_gemm(kernels, name, n_rows, n_out):
    for n_in in lengths(name):
        product = Product(name, n_in, n_out, n_rows)
        product.run(kernels, "gemm")
        product.check()


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("kind, n_rows", [("gemv", 1), ("multi", 3), ("gemm", 9)])
@pytest.mark.parametrize("transform", signatures.TRANSFORMS)
def test_transform_bias_and_add(kernels, name, kind, n_rows, transform):
    n_in = 203 if signatures.TILE_LAYOUTS[name] == "float" else 256
    for bias, add in ((True, False), (False, True), (True, True)):
        product = Product(name, n_in, 37, n_rows, transform, bias=bias, add=add)
        product.run(kernels, kind)
        product.check()


@pytest.mark.parametrize("kind, n_rows", [("gemv", 1), ("multi", 5), ("multi", 17)])
def test_reuse_holds_for_a_thread_that_found_no_work_before(kernels, kind, n_rows):
    product = Product("q4_0", 96, 64, n_rows)
    product.run(kernels, kind, threads=(2, 1, 0))
    product.y[:, : product.n_out] = GUARD
    product.run(kernels, kind, threads=(0, 1, 2), reuse=1)
    product.check()


@pytest.mark.parametrize("kind", ["gemv", "multi", "gemm"])
def test_no_rows_write_nothing(kernels, kind):
    product = Product("q8_0", 64, 32, 1)
    product.count[0] = 0
    product.run(kernels, kind)
    assert (product.y == GUARD).all()


@pytest.mark.parametrize("name", TYPES)
def test_embed(kernels, name):
    for n_in in lengths(name):
        raw, w = weights.matrix(name, 11, n_in)
        raw = np.ascontiguousarray(raw)
        tokens = np.array([10, 0, 3, 3], np.int32)
        batch = np.array([len(tokens), buffers.address(tokens), 0, 0, 0], np.int64)
        out = np.full((len(tokens), n_in + 3), GUARD, np.float32)
        kernel = f"matmul.{name}/embed"
        block = signatures.pack(
            kernel,
            batch=buffers.address(batch),
            w=buffers.address(raw),
            row_bytes=raw.shape[1],
            n_in=n_in,
            scale=buffers.f32_bits(1.5),
            out=buffers.address(out),
            ldo=out.strides[0],
        )
        kernels.call(kernel, block)
        np.testing.assert_allclose(out[:, :n_in], w[tokens] * 1.5, rtol=1e-5, atol=1e-6)
        assert (out[:, n_in:] == GUARD).all()
