"""A vocabulary of bytes and a few longer tokens, for tests that need ids but no model."""


class SmallVocab:
    """Ids 0 … 255 are the bytes, then `more` in order; `eog` are ids that end generation."""

    def __init__(self, more=(), eog=(b"<end>",)):
        self.pieces = [bytes([i]) for i in range(256)] + [*eog, *more]
        self.n_tokens = len(self.pieces)
        self.eog_ids = frozenset(range(256, 256 + len(eog)))

    def piece(self, token, special=True):
        return self.pieces[token]

    def id_of(self, piece):
        return self.pieces.index(piece)
