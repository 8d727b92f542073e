"""How many pages each pool of a memory has: enough for what it is promised to hold."""

from collections.abc import Sequence

from engine.compute.cpu.signatures import PAGE_CELLS
from engine.memory.kv_layout import KVLayer, find_kv_type, page_bytes
from engine.memory.page_pool import PagePool

# Pages of a sequence beyond its cells / 32: the last one, and those that holes leave half empty.
SPARE_PAGES = 2


def make_pools(
    layers: Sequence[KVLayer],
    type_k: str,
    type_v: str,
    n_ctx: int,
    n_seq_max: int,
    n_batch: int,
    snapshot_bytes: int,
) -> list[PagePool]:
    """Return a pool for each shape of layer, those without a window first.

    If every layer has a window, a pool without layers keeps the books of whole sequences.
    `snapshot_bytes` are room for snapshots, in each pool as much, for their mix is not known.
    """
    kinds = find_kv_type(type_k), find_kv_type(type_v)
    shapes: dict[KVLayer, list[int]] = {}
    for i, layer in enumerate(layers):
        shapes.setdefault(layer, []).append(i)
    if all(shape.window for shape in shapes):
        shapes[KVLayer(1, 16, 16)] = []
    extra = {}
    for shape, ids in shapes.items():
        sizes = (shape.head_size_k, shape.head_size_v)
        each = [page_bytes(kind, shape.n_head_kv, n) for kind, n in zip(kinds, sizes, strict=True)]
        extra[shape] = snapshot_bytes // (sum(each) * len(ids)) if ids else 0
    pools = []
    for shape, ids in sorted(shapes.items(), key=lambda item: item[0].window):
        n_pages = _n_pages(shape.window, n_ctx, n_seq_max, n_batch)
        n_pages += extra[shape] if ids else max(extra.values())
        pools.append(PagePool(shape, ids, n_pages, *kinds))
    return pools


def _n_pages(window: int, n_ctx: int, n_seq_max: int, n_batch: int) -> int:
    """Return the pages that n_seq_max sequences and a spare one need."""
    whole = -(-n_ctx // PAGE_CELLS)
    if window:
        # Each sequence once more: while a long text is read in batches, it is kept as it was.
        in_sight = 2 * (n_seq_max + 1) * (-(-window // PAGE_CELLS) + 1)
        whole = min(whole, in_sight + -(-n_batch // PAGE_CELLS))
    return whole + SPARE_PAGES * (n_seq_max + 1)
