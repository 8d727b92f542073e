"""A vocabulary in which token 7 is written <7>: enough for every sampler."""

import numpy as np


class NumberedVocab:
    def __init__(self, n_tokens, eog_ids=(), texts=None, suppressed=()):
        self.n_tokens = n_tokens
        self.eog_ids = frozenset(eog_ids)
        self.eos = self.eot = min(eog_ids, default=-1)
        self.suppressed = suppressed
        self._texts = texts

    def piece(self, token, special=True):
        if not special and token in self.eog_ids:
            return b""
        return self._texts[token] if self._texts else b"<%d>" % token

    def joined_pieces(self, special=True):
        pieces = [self.piece(token, special) for token in range(self.n_tokens)]
        return b"".join(pieces), np.cumsum([0, *map(len, pieces)])

    def tokenize(self, text, parse_special=True, add_special=True):
        """Longest piece first; what no piece begins is left out."""
        left, ids = text.encode(), []
        pieces = {self.piece(token): token for token in range(self.n_tokens)}
        while left:
            fitting = [p for p in pieces if p and left.startswith(p)]
            taken = max(fitting, key=len, default=left[:1])
            ids += [pieces[taken]] if fitting else []
            left = left[len(taken) :]
        return ids
