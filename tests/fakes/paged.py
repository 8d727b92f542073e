"""A scripted model over the real memory: each token lies in its page, as K and V would.

What a decode sees is read back from the pages, so a page that is shared, copied, cut or moved
wrongly changes the logits. Files are the real ones too.
"""

from pathlib import Path

import numpy as np

from engine.errors import InternalError
from engine.memory import (
    KVLayer,
    Memory,
    Segment,
    copy_sequence,
    peek_sequence,
    read_sequence,
    restore_sequence,
)
from engine.runtime.batch import make_batch
from tests.fakes.model import N_VOCAB, ScriptedContext

PAGE_CELLS = 32
HEAD = 16
FINGERPRINT = {"model": "scripted"}


class PagedContext(ScriptedContext):
    """ScriptedContext with `engine.memory.Memory` of n_ctx cells in place of lists.

    With a window, a second layer sees that many positions; what the model then says depends on
    them too, read from the pages of that layer.
    """

    def __init__(self, logits_of, n_ctx, n_seq_max, window=0, snapshot_bytes=0):
        super().__init__(logits_of)
        layers = [KVLayer(1, HEAD, HEAD)] + ([KVLayer(1, HEAD, HEAD, window)] if window else [])
        self.window = window
        self.memory = Memory(
            layers, n_ctx, n_seq_max, "f16", "f16", n_batch=64, snapshot_bytes=snapshot_bytes
        )

    def decode(self, tokens, positions=None, seq_ids=0, want="last"):
        self.before_decode(tokens, seq_ids)
        batch = make_batch(tokens, positions, seq_ids, want, self.memory, N_VOCAB)
        self._settle()
        placement = self.memory.place(batch.segments, batch.positions, batch.tokens)
        for i in range(len(self.memory.pools)):
            self._stored(i)[placement.cells[i]] = batch.tokens
        rows = np.zeros((len(batch.outputs), N_VOCAB), np.float32)
        for i, row in enumerate(batch.outputs.tolist()):
            seq_id = next(s.seq_id for s in batch.segments if s.first_row <= row < s.end_row)
            rows[i] = self.logits_of(self._seen(seq_id, int(batch.positions[row])))
        self.decodes.append((list(tokens), list(positions), list(seq_ids), list(want)))
        return rows if batch.order is None else rows[batch.order]

    def embed_piece(self, tokens, start):
        memory = self.memory
        if start == 0:
            memory.forget_spare()
        assert memory.lists[memory.spare][0].n_cells == start, "two texts at once"
        positions = np.arange(start, start + len(tokens), dtype=np.int32)
        segment = Segment(memory.spare, 0, len(tokens))
        memory.place([segment], positions, np.array(tokens, np.int32))

    def _settle(self):
        for pool, _, _ in list(self.memory.shifted_pages()):
            pool.settle_shifts()

    def _seen(self, seq_id, pos):
        """Read the tokens up to a position from the pages; in a window they must be the same."""
        known = self._tokens(seq_id, 0)
        assert sorted(known) == list(range(len(known))), "positions with a gap"
        tokens = [known[p] for p in range(pos + 1)]
        if self.window:
            near = self._tokens(seq_id, 1)
            for p in range(max(0, pos + 1 - self.window), pos + 1):
                if near.get(p) != tokens[p]:
                    raise InternalError(f"position {p} is not in the window at {pos}")
        return tokens

    def _tokens(self, seq_id, i_pool):
        pages = self.memory.lists[seq_id][i_pool]
        shown = pages.visible()
        used = shown != -1
        cells = pages.pages[:, None] * PAGE_CELLS + np.arange(PAGE_CELLS)
        stored = self._stored(i_pool)[cells[used]].tolist()
        return dict(zip(shown[used].tolist(), stored, strict=True))

    def _stored(self, i_pool):
        """The place of each cell's token, uint16 [n_cells]: the first element of its V."""
        pool = self.memory.pools[i_pool]
        return pool.v[0].view(np.uint16).reshape(-1, HEAD)[:, 0]

    def snapshot_sequence(self, seq_id):
        self._settle()
        return self.memory.snapshot(seq_id, FINGERPRINT)

    def restore_snapshot(self, snapshot, seq_id):
        self.memory.restore(snapshot, seq_id)
        return snapshot.tokens.tolist()

    def peek_saved(self, path):
        return peek_sequence(Path(path), FINGERPRINT, N_VOCAB).tokens.tolist()

    def peek_checkpoints(self, path):
        return peek_sequence(Path(path), FINGERPRINT, N_VOCAB).checkpoints

    def read_saved(self, path):
        return read_sequence(Path(path), FINGERPRINT, self.memory.pools, N_VOCAB)

    def copy_saved(self, source, target, n_tokens=-1):
        return copy_sequence(self.read_saved(source), Path(target), self.memory.pools, n_tokens)

    def restore_saved(self, saved, seq_id):
        restore_sequence(self.memory, seq_id, saved)
        return saved.tokens.tolist()
