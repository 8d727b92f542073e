"""The register tiles of attention: scores of rows over cells, and weighted sums of values.

Cells are the lanes of a score vector: K pages are cell-minor, so that no sum runs across a vector.
"""

from dataclasses import dataclass

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.compute.cpu.kernels.pages import seen_ir
from engine.compute.cpu.signatures import KEY_BLOCK
from engine.native.simd import (
    F32,
    I32,
    I64,
    LEVEL,
    Tile,
    const,
    exp_ir,
    f32x16,
    fma_ir,
    i32x16,
    ir_type,
    load_ir,
    ptr,
    splat_ir,
)

HIDDEN = -1.0e30  # the score of a cell that a row may not see; finite, as fast-math flags demand


@dataclass(frozen=True)
class Tiles:
    """Register tiles of one level: query rows of three sizes of tile, vectors of cells in a score
    step, and (rows, vectors of columns) of a value step for the smaller sizes and the largest;
    `blocks` are the two for types whose columns come in pairs of vectors.
    """

    rows: tuple[int, int, int]
    cell_vectors: int
    few: tuple[int, int]
    many: tuple[int, int]
    blocks: tuple[tuple[int, int], tuple[int, int]]

    def values(self, kv):
        """Return the tiles of a value step for a type, for the smaller sizes and the largest."""
        return self.blocks if kv.columns > 16 else (self.few, self.many)


# For 32 zmm, 16 ymm, 32 or 16 registers of 128 bits. few[0] divides rows, many[0] divides rows[2].
_HALF = Tiles((2, 4, 6), 1, (2, 2), (6, 1), ((2, 2), (3, 2)))
TILES = {
    "avx512": Tiles((4, 8, 12), 2, (4, 4), (6, 4), ((4, 4), (6, 4))),
    "avxvnni": _HALF,
    "avx2": _HALF,
    "neon": _HALF,
    "generic": Tiles((1, 2, 3), 1, (1, 1), (3, 1), ((1, 2), (1, 2))),
}[LEVEL]


def score_steps(n, vectors, kv):
    """Make zero(), step(tile, k, i, stride, q), finish(tile, s, positions, low) of a score tile.

    A step adds the dimensions 4i .. 4i + 3 of the block at k; finish masks and stores.
    """
    tile = Tile(f32x16, n * vectors)

    @intrinsic
    def zero(typing):
        return tile(), lambda context, b, sig, a: ir.Constant(ir_type(tile), None)

    @intrinsic
    def step(typing, acc, k, four, stride, q):
        def emit(context, b, sig, a):
            acc, k, four, stride, q = a
            halves = [b.add(k, b.mul(stride, I64(i))) for i in range(vectors)]
            keys = [kv.keys_ir(b, at, four) for at in halves]
            c = [b.extract_value(acc, i) for i in range(n * vectors)]
            for d in range(4):
                for r in range(n):
                    x = splat_ir(b, load_ir(b, q, F32, (d * n + r) * 4), 16)
                    for i in range(vectors):
                        c[r * vectors + i] = fma_ir(b, x, keys[i][d], c[r * vectors + i])
            for i in range(n * vectors):
                acc = b.insert_value(acc, c[i], i)
            return acc

        return tile(tile, *[types.int64] * 4), emit

    @intrinsic
    def finish(typing, acc, s, positions, low):
        """Hide what row r may not see: low[r], then span[r] = low + 4 n; s rows of KEY_BLOCK."""

        def emit(context, b, sig, a):
            acc, s, positions, low = a
            cells = [load_ir(b, positions, ir_type(i32x16), 64 * i) for i in range(vectors)]
            hidden = const(f32x16, HIDDEN)
            for r in range(n):
                first = splat_ir(b, load_ir(b, low, I32, 4 * r), 16)
                span = splat_ir(b, load_ir(b, low, I32, 4 * (n + r)), 16)
                for i in range(vectors):
                    seen = seen_ir(b, cells[i], first, span)
                    v = b.select(seen, b.extract_value(acc, r * vectors + i), hidden)
                    at = b.add(s, I64((r * KEY_BLOCK + 16 * i) * 4))
                    b.store(v, ptr(b, at, v.type), align=4)
            return context.get_dummy_value()

        return types.void(tile, types.int64, types.int64, types.int64), emit

    return zero, step, finish


def value_steps(n_rows, n_columns, kv):
    """Make load(o, stride), step(tile, v, p) and store(o, stride, tile) of an output tile.

    The tile is n_rows x 16 n_columns of o; a step adds p[r] (rows of KEY_BLOCK) times one cell's v.
    """
    tile = Tile(f32x16, n_rows * n_columns)
    places = [(r, i, r * n_columns + i) for r in range(n_rows) for i in range(n_columns)]
    word = types.int64

    def place(b, o, stride, r, i):
        return b.add(b.add(o, b.mul(stride, I64(r))), I64(64 * i))

    @intrinsic
    def load(typing, o, stride):
        def emit(context, b, sig, a):
            acc = ir.Constant(ir_type(tile), ir.Undefined)
            for r, i, at in places:
                v = load_ir(b, place(b, a[0], a[1], r, i), ir_type(f32x16))
                acc = b.insert_value(acc, v, at)
            return acc

        return tile(word, word), emit

    @intrinsic
    def store(typing, o, stride, acc):
        def emit(context, b, sig, a):
            for r, i, at in places:
                v = b.extract_value(a[2], at)
                b.store(v, ptr(b, place(b, a[0], a[1], r, i), v.type), align=4)
            return context.get_dummy_value()

        return types.void(word, word, tile), emit

    @intrinsic
    def step(typing, acc, v, p):
        def emit(context, b, sig, a):
            acc, v, p = a
            values = kv.values_ir(b, v, n_columns)
            weights = [
                splat_ir(b, load_ir(b, p, F32, r * KEY_BLOCK * 4), 16) for r in range(n_rows)
            ]
            for r, i, at in places:
                x = fma_ir(b, weights[r], values[i], b.extract_value(acc, at))
                acc = b.insert_value(acc, x, at)
            return acc

        return tile(tile, word, word), emit

    return load, step, store


@intrinsic
def weight_exp(typing, x):
    """exp(x) for x <= 0, exactly zero below -87."""

    def emit(context, b, sig, a):
        below = b.fcmp_ordered("<", a[0], const(f32x16, -87.0))
        return b.select(below, const(f32x16, 0.0), exp_ir(b, a[0]))

    return f32x16(f32x16), emit
