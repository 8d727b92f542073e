"""What the model remembers: contract and invariants of a context's memory.

K and V lie in pages of 32 cells, reference counted, one pool per layer shape. A sequence is a
list of pages with rising positions; sequences share pages, and whoever writes into a shared page
copies it first. So `seq_cp` and a `seq_rm` at the end move no byte, and a fork computes no token.
Layers with a window keep a window of pages: what lies behind it is given up as the sequence grows.
Going back behind it is refused (`seq_rm` returns False, `reaches` tells beforehand), and only a
snapshot, or reading again, brings it back.
`Memory.check_integrity()` proves the books: every page is free or listed as often as it counts
references, and each sequence's positions rise.

A `Snapshot` holds a sequence's pages as they are, like one sequence more that nobody writes to:

    snapshot = context.snapshot_sequence(seq_id)   # the engine thread; no byte is copied
    snapshot.tokens, snapshot.n_cells, snapshot.n_bytes, snapshot.pos_min, snapshot.pos_max
    snapshot.write(path)                           # any thread, while decoding goes on
    snapshot.write(path, adds=True)                # only what the file does not hold yet
    context.restore_snapshot(snapshot, seq_id)     # the engine thread; no byte is copied
    snapshot.release()                             # any thread; `is_held` is False from here on

A file comes back in two steps as well:

    saved = context.read_saved(path)               # any thread: maps, checks everything
    tokens = context.restore_saved(saved, seq_id)  # the engine thread: copies the pages
    saved.checkpoints, saved.first(n)              # the same as it was some tokens before

`context.save_sequence` and `context.restore_sequence` do both steps at once.
"""

from engine.memory.kv_layout import KV_TYPES, KVLayer
from engine.memory.memory import Memory
from engine.memory.page_pool import PagePool
from engine.memory.placement import Placement, Segment
from engine.memory.saved_sequence import (
    MODEL_NAME,
    SavedSequence,
    peek_sequence,
    read_sequence,
    restore_sequence,
)
from engine.memory.sequence_writer import MOST_CHECKPOINTS, copy_sequence
from engine.memory.snapshot import Snapshot
from engine.memory.state_file import sweep_unfinished

__all__ = [
    "KV_TYPES",
    "MODEL_NAME",
    "MOST_CHECKPOINTS",
    "KVLayer",
    "Memory",
    "PagePool",
    "Placement",
    "SavedSequence",
    "Segment",
    "Snapshot",
    "copy_sequence",
    "peek_sequence",
    "read_sequence",
    "restore_sequence",
    "sweep_unfinished",
]
