"""Operands of the attention kernels over a paged batch, beside what their twins answer."""

import numpy as np

from engine.compute.cpu import signatures
from engine.native.buffers import address, aligned, f32_bits
from tests.reference import attention as twin

UNIT = "attention.f16.f16"


def run_all(kernels, name, block, n_threads):
    """Run a kernel as every thread of a team would, one after the other."""
    for thread in range(n_threads):
        kernels.call(name, block, thread, n_threads)


class Attend:
    """Operands of one attention over a Paged batch."""

    def __init__(self, paged, n_head, n_threads=3, **options):
        self.paged, self.n_head, self.n_threads = paged, n_head, n_threads
        size_k, size_v = paged.size_k, paged.size_v
        n = paged.n_tokens
        self.scale = np.float32(size_k**-0.5)
        self.window, self.softcap = options.get("window", 0), options.get("softcap", 0.0)
        self.sinks = options.get("sinks")
        self.q = paged.rng.standard_normal((n, n_head, size_k)).astype(np.float32)
        self.out = np.full((n, n_head * size_v + 7), 3.5, np.float32)
        stride = signatures.attention_scratch_bytes(size_k, size_v)
        self.scratch = aligned(stride * n_threads, np.uint8)
        self.scratch[:] = 0xFF
        self.counter = np.zeros(1, np.int64)
        n_bytes = signatures.partials_bytes(n, n_head, paged.n_head_kv, size_v, n_threads)
        self.partials = aligned(n_bytes + 64, np.uint8)
        self.partials[:] = 0xFF
        words = {
            "batch": address(paged.batch),
            "pool": address(paged.pool),
            "q": address(self.q),
            "ldq": n_head * size_k * 4,
            "n_head": n_head,
            "n_head_kv": paged.n_head_kv,
            "head_size_k": size_k,
            "head_size_v": size_v,
            "scale": f32_bits(self.scale),
            "softcap": f32_bits(self.softcap),
            "window": self.window,
            "sinks": 0 if self.sinks is None else address(self.sinks),
            **paged.page_words(),
            "out": address(self.out),
            "ldo": self.out.strides[0],
            "scratch": address(self.scratch),
            "scratch_stride": stride,
            "counter": address(self.counter),
        }
        self.block = signatures.pack(f"{UNIT}/attend", **words)
        self.split_block = signatures.pack(
            f"{UNIT}/attend_split", **words, partials=address(self.partials)
        )

    def whole(self, kernels, unit=UNIT):
        self.counter[:] = 0
        run_all(kernels, f"{unit}/attend", self.block, self.n_threads)
        return self.answer()

    def split(self, kernels, unit=UNIT):
        self.counter[:] = 0
        run_all(kernels, f"{unit}/attend_split", self.split_block, self.n_threads)
        run_all(kernels, f"{unit}/merge", self.split_block, self.n_threads)
        assert (self.partials[-64:] == 0xFF).all(), "wrote beyond the partials"
        return self.answer()

    def answer(self):
        n_values = self.n_head * self.paged.size_v
        assert (self.out[:, n_values:] == 3.5).all(), "wrote beyond the rows"
        out = self.out[:, :n_values].copy().reshape(-1, self.n_head, self.paged.size_v)
        self.out[:] = 3.5
        return out

    def expected(self):
        paged = self.paged
        parts = [
            twin.attention(
                self.q[rows],
                paged.k[i],
                paged.v[i],
                paged.batch_positions[i],
                paged.positions[i],
                self.scale,
                self.window,
                self.softcap,
                self.sinks,
            )
            for i, rows in enumerate(paged.rows)
        ]
        return paged.as_v.value_as_kept(np.concatenate(parts))


class Store:
    """Operands of `store` over a Paged batch."""

    def __init__(self, paged, n_head, rng):
        n, n_head_kv = paged.n_tokens, paged.n_head_kv
        self.paged, self.n_head = paged, n_head
        self.q, self.k, self.v = (
            rng.standard_normal((n, heads, size)).astype(np.float32)
            for heads, size in (
                (n_head, paged.size_k),
                (n_head_kv, paged.size_k),
                (n_head_kv, paged.size_v),
            )
        )
        self.q_norm, self.k_norm = (
            rng.standard_normal(paged.size_k).astype(np.float32) for _ in range(2)
        )
        self.eps = 1e-5

    def run(
        self,
        kernels,
        inv_freq=None,
        neox=0,
        magnitude=1.0,
        normed=True,
        n_threads=3,
        unit=UNIT,
    ):
        """Run `store`; q as it became, and the twin's q, k, v before rounding."""
        paged, n_rot, table = self.paged, 0, np.zeros(1, np.float32)
        if inv_freq is not None:
            n_rot = 2 * len(inv_freq)
            table = np.full((paged.n_tokens, 2 * n_rot), np.nan, np.float32)
            block = signatures.pack(
                "pointwise/rope_table",
                batch=address(paged.batch),
                inv_freq=address(inv_freq),
                n_rot=n_rot,
                magnitude=f32_bits(magnitude),
                neox=neox,
                table=address(table),
            )
            run_all(kernels, "pointwise/rope_table", block, n_threads)
        q, k = self.q.copy(), self.k.copy()
        block = signatures.pack(
            f"{UNIT}/store",
            batch=address(paged.batch),
            pool=address(paged.pool),
            q=address(q),
            ldq=q.strides[0],
            k=address(k),
            ldk=k.strides[0],
            v=address(self.v),
            ldv=self.v.strides[0],
            n_head=self.n_head,
            n_head_kv=paged.n_head_kv,
            head_size_k=paged.size_k,
            head_size_v=paged.size_v,
            q_norm=address(self.q_norm) if normed else 0,
            k_norm=address(self.k_norm) if normed else 0,
            eps=f32_bits(self.eps),
            table=address(table) if n_rot else 0,
            n_rot=n_rot,
            neox=neox,
            **paged.page_words(),
        )
        run_all(kernels, f"{unit}/store", block, n_threads)
        return q, *self._twin(inv_freq, neox, magnitude, normed)

    def _twin(self, inv_freq, neox, magnitude, normed):
        q, k = self.q, self.k
        if normed:
            q, k = (
                x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + self.eps) * w
                for x, w in ((q, self.q_norm), (k, self.k_norm))
            )
        if inv_freq is not None:
            q, k = (
                twin.rope(x, self.paged.flat_positions, inv_freq, neox, magnitude) for x in (q, k)
            )
        return q, k


def close(got, wanted):
    """Assert that the largest error is below 1e-5 of the largest value."""
    error = np.abs(got - wanted).max() / np.abs(wanted).max()
    assert error < 1e-5, f"relative error {error:.1e}"
