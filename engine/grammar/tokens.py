"""The tokens of a vocabulary as the matching library wants them, made once for each vocabulary."""

import time
import weakref
from collections.abc import Collection, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.errors import GrammarError
from engine.grammar.bindings import Tokenizer


class Vocabulary(Protocol):
    """What the room needs of a vocabulary; ids are 0 … n_tokens - 1."""

    n_tokens: int

    @property
    def eog_ids(self) -> Collection[int]:
        """Ids of the tokens that end generation."""

    def piece(self, token: int, special: bool = True) -> bytes:
        """Return the bytes of one token."""


class TokenTable:
    """The trie of all tokens, shared by every matcher of one vocabulary; read-only.

    A token's text is its bytes with special tokens visible, so a token may end in the middle of a
    character. Tokens without text, and those that begin with NUL, are never allowed. Takes about
    0.2 s for 49k tokens and 1.3 s for 262k, beside other threads: `of` keeps it as long as the
    vocabulary lives.
    """

    def __init__(self, vocab: Vocabulary) -> None:
        self.n_tokens = vocab.n_tokens
        self.eog_ids = frozenset(vocab.eog_ids)
        self.pieces = list(_pieces(vocab))
        # Without a token that ends generation the library gets one that is no real token.
        ends = sorted(self.eog_ids) or [vocab.n_tokens]
        self.tokenizer = Tokenizer(_as_wanted(self.pieces, ends), ends)
        self.n_words = (self.tokenizer.vocab_size + 31) // 32
        self._ids: dict[bytes, int] = {}

    @classmethod
    def of(cls, vocab: Vocabulary) -> "TokenTable":
        """Return the table of a vocabulary; made at the first call."""
        found = _TABLES.get(vocab)
        if found is None:
            found = _TABLES[vocab] = cls(vocab)
        return found

    def spell(self, text: bytes) -> list[int]:
        """Return ids of tokens that together have this text; raises GrammarError without any."""
        if not self._ids:
            self._ids = {piece: i for i, piece in enumerate(self.pieces) if 0 < len(piece) <= 32}
        ids, place = [], 0
        while place < len(text):
            sizes = range(min(32, len(text) - place), 0, -1)
            size = next((n for n in sizes if text[place : place + n] in self._ids), 0)
            if not size:
                raise GrammarError("No tokens of this model spell the text that began the grammar.")
            ids.append(self._ids[text[place : place + size]])
            place += size
        return ids

    def blank(self) -> NDArray[np.uint32]:
        """Return an array for one mask, uint32 [n_words]: bit i % 32 of word i // 32 is token i."""
        return np.zeros(self.n_words, np.uint32)


_TABLES: "weakref.WeakKeyDictionary[Vocabulary, TokenTable]" = weakref.WeakKeyDictionary()


def _pieces(vocab: Vocabulary) -> Iterator[bytes]:
    """Yield the bytes of every token, and give way to other threads now and then."""
    for token in range(vocab.n_tokens):
        if token % 1024 == 0:
            time.sleep(0)
        yield vocab.piece(token)


def _as_wanted(pieces: list[bytes], ends: list[int]) -> list[bytes]:
    """Return the texts for the library, which takes what begins with 0xFF for no text."""
    tokens = [b"" if piece[:1] == b"\0" else piece for piece in pieces]
    for token in ends:
        if token == len(tokens):
            tokens.append(b"<end>")
        tokens[token] = b"\xff" + tokens[token]
    return tokens
