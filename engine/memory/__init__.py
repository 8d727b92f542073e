"""What the model remembers: contract and invariants of a context's memory.

K and V lie in pages of 32 cells, reference counted, one pool per layer shape. A sequence is a
list of pages with rising positions; sequences share pages, and whoever writes into a shared page
copies it first. So `seq_cp` and a `seq_rm` at the end move no byte, and a fork computes no token.
`Memory.check_integrity()` proves the books: every page is free or listed as often as it counts
references, and each sequence's positions rise.
"""

from engine.memory.kv_layout import KV_TYPES, KVLayer
from engine.memory.memory import Memory, Placement, Segment
from engine.memory.page_pool import PagePool
from engine.memory.saved_sequence import restore_sequence, save_sequence

__all__ = [
    "KV_TYPES",
    "KVLayer",
    "Memory",
    "PagePool",
    "Placement",
    "Segment",
    "restore_sequence",
    "save_sequence",
]
