"""How K and V of one layer lie in a page of 32 cells, for every KV type."""

from dataclasses import dataclass

from engine.compute.cpu.signatures import PAGE_CELLS, padded
from engine.errors import RequestError, nearest


@dataclass(frozen=True)
class KVLayer:
    """The shape of one layer's memory; `window` 0 sees every position before."""

    n_head_kv: int
    head_size_k: int
    head_size_v: int
    window: int = 0


@dataclass(frozen=True)
class KVType:
    """One element type of the memory: blocks of `block` neighbouring elements of a head."""

    name: str
    block: int
    block_bytes: int

    def row_bytes(self, n: int) -> int:
        """Return the bytes of n elements, n a multiple of the block."""
        return n // self.block * self.block_bytes


KV_TYPES: dict[str, KVType] = {
    row.name: row
    for row in (
        KVType("f32", 1, 4),
        KVType("f16", 1, 2),
        KVType("bf16", 1, 2),
        KVType("q8_0", 32, 34),
        KVType("q5_0", 32, 22),
        KVType("q5_1", 32, 24),
        KVType("q4_0", 32, 18),
        KVType("q4_1", 32, 20),
        KVType("iq4_nl", 32, 18),
    )
}


def find_kv_type(name: str) -> KVType:
    """Return the KV type of that name; one that is not built in raises RequestError."""
    found = KV_TYPES.get(name)
    if found is None:
        raise RequestError(
            f"The memory type “{name}” is not available in this version; it keeps K and V as "
            f"{', '.join(KV_TYPES)}.{nearest(name, KV_TYPES)}"
        )
    return found


def page_bytes(kind: KVType, n_head_kv: int, head_size: int) -> int:
    """Return the bytes of one layer's K (or V) in one page.

    K is [n_head_kv][2][head_size][16], 16 positions side by side; V is [n_head_kv][32][head_size].
    Raises RequestError if the blocks of the type do not divide the head.
    """
    if head_size % kind.block:
        whole = ", ".join(name for name, row in KV_TYPES.items() if row.block == 1)
        raise RequestError(
            f"The memory type “{kind.name}” has blocks of {kind.block} values, and the heads of "
            f"this model have {head_size}: choose {whole}."
        )
    return n_head_kv * PAGE_CELLS * kind.row_bytes(padded(head_size))
