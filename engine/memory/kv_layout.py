"""How K and V of one layer lie in a page of 32 cells, for every KV type."""

from collections.abc import Callable
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
    """One element type of the memory: `row_bytes(n)` are the bytes of n elements."""

    name: str
    row_bytes: Callable[[int], int]


KV_TYPES: dict[str, KVType] = {"f16": KVType("f16", lambda n: 2 * n)}


def find_kv_type(name: str) -> KVType:
    """Return the KV type of that name; one that is not built in raises RequestError."""
    found = KV_TYPES.get(name)
    if found is None:
        raise RequestError(
            f"The memory type “{name}” is not available in this version; it keeps K and V as "
            f"{', '.join(KV_TYPES)}.{nearest(name, KV_TYPES)}"
        )
    return found


def page_bytes(kv_type: KVType, n_head_kv: int, head_size: int) -> int:
    """Return the bytes of one layer's K (or V) in one page.

    K is [n_head_kv][2][head_size][16], 16 positions side by side; V is [n_head_kv][32][head_size].
    """
    return n_head_kv * PAGE_CELLS * kv_type.row_bytes(padded(head_size))
