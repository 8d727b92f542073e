"""One matrix product with all its buffers, run by the kernels and compared with the twin.

`python -m tests.make.products TYPE…` checks types on the CPU level of the environment.
"""

import sys

import numpy as np

from engine.compute.cpu import signatures
from engine.native import buffers, objects
from tests.make import weights
from tests.reference import matmul as twin

BLOCKS = {"float": None, "block32": 32, "block256": 256}
EPS = 1e-5
GUARD = 1e30
MAX_THREADS = 3


def lengths(name):
    """Return row lengths worth a test: less than a group, ragged, whole."""
    if name in ("f32", "f16", "bf16"):
        return (1, 40, 64, 203)
    return (256, 768) if name.endswith("_k") else (32, 64, 96, 256, 320, 576, 1184)


class Product:
    """One product with all its buffers, guarded against writes beyond them."""

    def __init__(self, name, n_in, n_out, n_rows, transform="plain", seed=0, **options):
        rng = np.random.default_rng(seed)
        self.name, self.n_in, self.n_out, self.n_rows = name, n_in, n_out, n_rows
        raw, self.w = weights.matrix(name, n_out, n_in, seed)
        self.raw = buffers.aligned(raw.shape, np.uint8)  # ends where the weights end
        self.raw[:] = raw
        self.transform, self.options = transform, options
        self.x, self.x2 = (self._rows(rng, n_in) for _ in range(2))
        self.norm = rng.standard_normal(n_in).astype(np.float32)
        self.bias = rng.standard_normal(n_out).astype(np.float32)
        self.y = buffers.aligned((n_rows, n_out + 5), np.float32)
        self.y[:] = GUARD
        self.before = rng.standard_normal((n_rows, n_out)).astype(np.float32)
        if options.get("add"):
            self.y[:, :n_out] = self.before
        self.count = np.array([n_rows], np.int64)
        self.counter = buffers.aligned(8, np.int64)
        self.stride = signatures.matmul_scratch_bytes(n_in, n_rows)
        self.scratch = buffers.aligned(MAX_THREADS * self.stride, np.uint8)
        self.tiles = buffers.aligned(signatures.tile_bytes(n_in, n_rows), np.uint8)
        for unset in (self.scratch, self.tiles):
            unset[:] = 0xFF  # NaN and -1: nothing may be taken from here unwritten

    def _rows(self, rng, n):
        x = buffers.aligned((self.n_rows, n + 3), np.float32)
        x[:] = rng.standard_normal(x.shape)
        return x[:, :n]

    def words(self, kernel, reuse=0):
        """Return the block of a matmul kernel."""
        a = buffers.address
        everything = {
            **{"n_rows": a(self.count), "transform": signatures.TRANSFORMS.index(self.transform)},
            **{"x": a(self.x), "ldx": self.x.strides[0], "x2": a(self.x2)},
            **{"ldx2": self.x2.strides[0], "norm": a(self.norm), "eps": buffers.f32_bits(EPS)},
            **{"w": a(self.raw), "row_bytes": self.raw.shape[1], "n_in": self.n_in},
            **{"n_out": self.n_out, "add": int(self.options.get("add", False))},
            "bias": a(self.bias) if self.options.get("bias") else 0,
            **{"y": a(self.y), "ldy": self.y.strides[0], "reuse": reuse, "tiles": a(self.tiles)},
            **{"scratch": a(self.scratch), "scratch_stride": self.stride},
            **{"counter": a(self.counter), "block": self.block or 0},
        }
        names = signatures.words(kernel)
        return signatures.pack(kernel, **{name: everything[name] for name in names})

    @property
    def block(self):
        return BLOCKS[signatures.TILE_LAYOUTS[self.name]]

    def run(self, kernels, kind, threads=(0,), reuse=0):
        """Run gemv, multi, or gemm with its input kernel, one thread after the other."""
        steps = [f"matmul.{self.name}/{kind}"]
        if kind == "gemm":
            steps.insert(0, "matmul.input/" + ("quantize" if self.block else "arrange"))
        for step in steps:
            self.counter[:] = 0
            for thread in threads:
                kernels.call(step, self.words(step, reuse), thread, len(threads))

    def check(self, n_rows=None):
        """Compare with the twin; the guards must be intact."""
        n_rows = self.n_rows if n_rows is None else n_rows
        x = twin.transformed(self.transform, self.x, self.x2, self.norm, EPS)
        if self.block:
            x = twin.quantized(x, min(self.block, self.n_in))
        bias = self.bias if self.options.get("bias") else None
        expected = twin.product(self.w, x, bias, self.before if self.options.get("add") else None)
        # The tolerance is relative to the terms that were added up, not to what is left of them.
        size = np.abs(x).astype(np.float64) @ np.abs(self.w.T).astype(np.float64)
        limit = 3e-6 * size + 1e-6
        if self.transform != "plain" and self.block:
            limit += 2e-3 * size  # one rounding of an input may fall to the other side
        error = np.abs(self.y[:n_rows, : self.n_out] - expected[:n_rows])
        assert (error <= limit[:n_rows]).all(), float((error / size[:n_rows]).max())
        assert (self.y[:, self.n_out :] == GUARD).all()


def check_types(names):
    """Check gemv, multi and gemm of weight types; a wrong product raises AssertionError."""
    kernels = objects.load([*(f"matmul.{name}" for name in names), "matmul.input"])
    for name in names:
        for n_in in lengths(name):
            for kind, n_rows in (("gemv", 1), ("multi", 3), ("gemm", 5)):
                for transform in ("plain", "rms_norm"):
                    product = Product(name, n_in, 37, n_rows, transform, bias=True)
                    product.run(kernels, kind)
                    product.check()


if __name__ == "__main__":
    check_types(sys.argv[1:])
