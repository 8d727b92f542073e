"""Sequences scattered over pages of cells, with garbage wherever nothing is stored."""

import numpy as np

from engine.native.buffers import address, aligned
from tests.make.kv_cells import CELLS


def _garbage(*shape):
    pages = aligned(shape, np.uint8)
    pages[...] = 0xFF
    return pages


class Paged:
    """Pages, sequences and one batch over them, as kernels are given them.

    `sequences` is a list of (n_past, n_rows): cells stored before, and rows of this batch.
    `holes` is the share of past cells that were removed again. Every byte that no cell owns is
    0xFF: NaN in each float type. k, v f32[cells, kv heads, size] hold what was stored, by sequence.
    """

    def __init__(
        self, rng, sequences, n_head_kv, size_k, size_v, holes=0.0, stored=("f16", "f16"), gap=1
    ):
        self.rng, self.n_head_kv, self.size_k, self.size_v = rng, n_head_kv, size_k, size_v
        self.as_k, self.as_v = (CELLS[name] for name in stored)
        lengths = [n_past + n_rows for n_past, n_rows in sequences]
        n_pages = [-(-n // 32) for n in lengths]
        self.n_pages = sum(n_pages) + 2
        k_bytes, v_bytes = self.as_k.row_bytes(size_k), self.as_v.row_bytes(size_v)
        self.k_pages = _garbage(self.n_pages, n_head_kv, 2, 16 * k_bytes)
        self.v_pages = _garbage(self.n_pages, n_head_kv, 32, v_bytes)
        self.page_positions = np.full((self.n_pages, 32), -1, np.int32)
        free = list(rng.permutation(self.n_pages))
        self.pages = [np.array([free.pop() for _ in range(n)], np.int32) for n in n_pages]
        self.positions, self.cells, self.batch_positions = [], [], []
        for (n_past, _), n, pages in zip(sequences, lengths, self.pages, strict=True):
            positions = np.arange(n, dtype=np.int32) * gap
            cells = np.repeat(pages * 32, 32)[:n] + np.arange(n) % 32
            removed = rng.random(n) < holes
            removed[n_past:] = False
            positions[removed] = -1
            self.page_positions.reshape(-1)[cells] = positions
            self.positions.append(positions)
            self.cells.append(cells[n_past:].astype(np.int32))
            self.batch_positions.append(positions[n_past:])
        self.k = [self._values(n, size_k, self.as_k) for n in lengths]
        self.v = [self._values(n, size_v, self.as_v) for n in lengths]
        for i, ((n_past, _), pages) in enumerate(zip(sequences, self.pages, strict=True)):
            for c in np.flatnonzero(self.positions[i][:n_past] >= 0):
                self.write(pages[c // 32] * 32 + c % 32, self.k[i][c], self.v[i][c])
        self._describe(sequences)

    def _values(self, n, size, cells):
        x = self.rng.standard_normal((n, self.n_head_kv, size)).astype(np.float32)
        return cells.rounded(x)

    def write(self, cell, k, v):
        """Store one cell's k [kv heads, size_k] and v [kv heads, size_v], zeros in the padding."""
        page, at = divmod(int(cell), 32)
        for h in range(self.n_head_kv):
            self.as_k.write_key(self.k_pages[page, h, at // 16], at % 16, k[h])
            self.as_v.write_row(self.v_pages[page, h, at], v[h])

    def fill(self):
        """Write the batch's own rows, as `store` would; self."""
        for i, cells in enumerate(self.cells):
            n_past = len(self.positions[i]) - len(cells)
            for c, cell in enumerate(cells):
                self.write(cell, self.k[i][n_past + c], self.v[i][n_past + c])
        return self

    def read_k(self, cell):
        """Return the stored k f32[kv heads, padded size] of a cell."""
        halves = self.k_pages[cell // 32, :, cell % 32 // 16]
        return np.stack([self.as_k.read_key(half, cell % 16) for half in halves])

    def read_v(self, cell):
        """Return the stored v f32[kv heads, padded size] of a cell."""
        return np.stack([self.as_v.read_row(row) for row in self.v_pages[cell // 32, :, cell % 32]])

    def _describe(self, sequences):
        n_rows = [n for _, n in sequences]
        self.n_tokens = sum(n_rows)
        self.flat_positions = np.concatenate(self.batch_positions).astype(np.int32)
        self.flat_cells = np.concatenate(self.cells).astype(np.int32)
        first = np.cumsum([0, *n_rows])
        self.rows = [slice(first[i], first[i + 1]) for i in range(len(n_rows))]
        self.runs = np.array(
            [
                (first[i], n_rows[i], address(pages), len(pages))
                for i, pages in enumerate(self.pages)
            ],
            np.int64,
        )
        self.batch = np.array([self.n_tokens, 0, address(self.flat_positions), 0, 0], np.int64)
        words = (address(x) for x in (self.runs, self.flat_cells, self.page_positions))
        self.pool = np.array([len(sequences), *words], np.int64)

    def page_words(self):
        """Return the words that tell a kernel where the pages are."""
        return {
            "k_base": address(self.k_pages),
            "k_page_bytes": self.k_pages[0].nbytes,
            "v_base": address(self.v_pages),
            "v_page_bytes": self.v_pages[0].nbytes,
        }
