"""How one cell of K or V is written and read in a page, for every type, in plain NumPy."""

import numpy as np

from engine.compute.cpu import signatures
from tests.reference import kv_blocks
from tests.reference.attention import hadamard


class FloatCells:
    """Floats of one NumPy type; K has its cells side by side."""

    def __init__(self, stored):
        self.stored = np.dtype(stored)

    def row_bytes(self, size):
        return signatures.padded(size) * self.stored.itemsize

    def key_as_kept(self, x):
        return x

    value_as_kept = key_as_kept

    def rounded(self, x):
        return self._decoded(self._encoded(x))

    def write_row(self, row, x):
        values = row.view(self.stored)
        values[:] = 0
        values[: len(x)] = self._encoded(x)

    def read_row(self, row):
        return self._decoded(row.view(self.stored))

    def write_key(self, half, cell, x):
        values = half.view(self.stored).reshape(-1, 16)
        values[:, cell] = 0
        values[: len(x), cell] = self._encoded(x)

    def read_key(self, half, cell):
        return self._decoded(half.view(self.stored).reshape(-1, 16)[:, cell])

    def _encoded(self, x):
        return np.asarray(x, np.float32).astype(self.stored)

    def _decoded(self, stored):
        return stored.astype(np.float32)


class BrainCells(FloatCells):
    """bfloat16: the upper halves of float32."""

    def __init__(self):
        super().__init__(np.uint16)

    def _encoded(self, x):
        bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)

    def _decoded(self, stored):
        return (stored.astype(np.uint32) << 16).view(np.float32)


class BlockCells:
    """Blocks of 32 values; K has the parts of 16 blocks side by side."""

    def __init__(self, kind):
        self.kind, self.bits = kind, kv_blocks.BITS[kind]
        self.has_min = kind in ("q5_1", "q4_1")
        self.fifth_at = 4 if self.has_min else 2
        self.codes_at = self.fifth_at + (4 if self.bits == 5 else 0)
        self.n_bytes = self.codes_at + (32 if self.bits == 8 else 16)

    def row_bytes(self, size):
        return size // 32 * self.n_bytes

    def key_as_kept(self, x):
        """Return keys as they are before rounding, or back again: rotated if long enough."""
        chunk = np.shape(x)[-1] & -np.shape(x)[-1]
        return hadamard(x, chunk) if chunk >= 64 else x

    def value_as_kept(self, x):
        return hadamard(x, 64) if np.shape(x)[-1] % 64 == 0 else x

    def rounded(self, x):
        shape = np.shape(x)
        parts = kv_blocks.quantize(self.kind, np.reshape(x, (*shape[:-1], -1, 32)))
        return kv_blocks.dequantize(self.kind, *parts).reshape(shape)

    def write_row(self, row, x):
        parts = kv_blocks.quantize(self.kind, np.reshape(x, (-1, 32)))
        whole = b"".join(kv_blocks.pack(self.kind, *block) for block in zip(*parts, strict=True))
        row[:] = np.frombuffer(whole, np.uint8)

    def read_row(self, row):
        return np.concatenate([self._read(b.tobytes()) for b in row.reshape(-1, self.n_bytes)])

    def _read(self, block):
        """Return the values of one block as in a model file."""
        d = np.frombuffer(block, np.float16, 1)
        m = np.frombuffer(block, np.float16, 1, 2) if self.has_min else np.zeros(1, np.float16)
        codes = np.frombuffer(block, np.uint8, offset=self.codes_at)
        if self.bits != 8:
            codes = np.concatenate([codes & 15, codes >> 4])
        if self.bits == 5:
            bits = np.frombuffer(block, np.uint8, 4, self.fifth_at)
            codes = codes | np.unpackbits(bits, bitorder="little") << 4
        return kv_blocks.dequantize(self.kind, codes[None], d, m)[0]

    def write_key(self, half, cell, x):
        parts = kv_blocks.quantize(self.kind, np.reshape(x, (-1, 32)))
        for block, (codes, d, m) in zip(self._blocks(half), zip(*parts, strict=True), strict=True):
            block[:32].view(np.float16)[cell] = d
            if self.has_min:
                block[32:64].view(np.float16)[cell] = m
            if self.bits == 5:
                bits = np.packbits(codes >> 4 & 1, bitorder="little").view("<u4")
                block[16 * self.fifth_at :][:64].view("<u4")[cell] = bits[0]
            if self.bits != 8:
                codes = codes[0::2] & 15 | (codes[1::2] & 15) << 4
            block[16 * self.codes_at :].reshape(-1, 16)[:, cell] = codes

    def read_key(self, half, cell):
        values = []
        for block in self._blocks(half):
            d = block[:32].view(np.float16)[cell : cell + 1]
            m = block[32:64].view(np.float16)[cell : cell + 1]
            codes = block[16 * self.codes_at :].reshape(-1, 16)[:, cell]
            if self.bits != 8:
                codes = np.stack([codes & 15, codes >> 4], -1).reshape(-1)
            if self.bits == 5:
                bits = block[16 * self.fifth_at :][:64].reshape(16, 4)[cell]
                codes = codes | np.unpackbits(bits, bitorder="little") << 4
            codes = np.ascontiguousarray(codes)[None]
            values.append(kv_blocks.dequantize(self.kind, codes, d, m)[0])
        return np.concatenate(values)

    def _blocks(self, half):
        return half.reshape(-1, 16 * self.n_bytes)


CELLS = {
    "f32": FloatCells(np.float32),
    "f16": FloatCells(np.float16),
    "bf16": BrainCells(),
    **{kind: BlockCells(kind) for kind in kv_blocks.BITS},
}
