"""A scripted model over the real memory: each token lies in its page, as K and V would.

What a decode sees is read back from the pages, so a page that is shared, copied, cut or moved
wrongly changes the logits.
"""

import numpy as np

from engine.memory import KVLayer, Memory
from engine.runtime.batch import make_batch
from tests.fakes.model import N_VOCAB, ScriptedContext

PAGE_CELLS = 32
HEAD = 16


class PagedContext(ScriptedContext):
    """ScriptedContext with `engine.memory.Memory` of n_ctx cells in place of lists."""

    def __init__(self, logits_of, n_ctx, n_seq_max):
        super().__init__(logits_of)
        self.memory = Memory([KVLayer(1, HEAD, HEAD)], n_ctx, n_seq_max, "f16", "f16")
        self.memory.tokens = self.tokens

    def decode(self, tokens, positions=None, seq_ids=0, want="last"):
        self.before_decode(tokens, seq_ids)
        batch = make_batch(tokens, positions, seq_ids, want, self.memory, N_VOCAB)
        for pool, _, _ in list(self.memory.shifted_pages()):
            pool.settle_shifts()
        placement = self.memory.place(batch.segments, batch.positions)
        self._stored()[placement.cells[0]] = batch.tokens
        rows = np.zeros((len(batch.outputs), N_VOCAB), np.float32)
        for i, row in enumerate(batch.outputs.tolist()):
            seq_id = next(s.seq_id for s in batch.segments if s.first_row <= row < s.end_row)
            rows[i] = self.logits_of(self.tokens(seq_id)[: int(batch.positions[row]) + 1])
        self.decodes.append((list(tokens), list(positions), list(seq_ids), list(want)))
        return rows if batch.order is None else rows[batch.order]

    def tokens(self, seq_id):
        """Read the tokens of a sequence from its pages."""
        pages = self.memory.lists[seq_id][0]
        shown = pages.visible()
        used = shown != -1
        assert shown[used].tolist() == list(range(int(used.sum()))), "positions with a gap"
        cells = pages.pages[:, None] * PAGE_CELLS + np.arange(PAGE_CELLS)
        return self._stored()[cells[used]].tolist()

    def _stored(self):
        """The place of each cell's token, uint16 [n_cells]: the first element of its V."""
        pool = self.memory.pools[0]
        return pool.v[0].view(np.uint16).reshape(-1, HEAD)[:, 0]
