"""Matcher: one text as it grows, which tokens may come next, and the way back."""

import time

import numpy as np
from numpy.typing import NDArray

from engine.errors import GrammarError, InternalError
from engine.grammar.bindings import State
from engine.grammar.library import library_error
from engine.grammar.tokens import TokenTable

_BITS = np.unpackbits(np.arange(256, dtype=np.uint8), bitorder="little").reshape(256, 8)
# The upper limits of the logits of eight tokens, for each byte of a mask.
_LIMITS = np.where(_BITS == 1, np.float32(np.inf), np.float32(-np.inf))
MASK_SECONDS = 0.1  # of the thread that every answer waits for, for one token


class Matcher:
    """Follows one text token by token; not shared between threads."""

    def __init__(self, tokens: TokenTable, state: State) -> None:
        self.tokens = tokens
        self._state = state
        self._mask = tokens.blank()
        self._taken: list[int] = []  # tokens of the library for each accepted one
        self._n_ends = 0

    @property
    def may_end(self) -> bool:
        """Whether the text is complete, so that a token may end generation here."""
        return self._state.is_accepting

    @property
    def must_end(self) -> bool:
        """Whether nothing but the end can follow."""
        return bool(self._n_ends) or (self._state.is_stopped and not self._state.is_error)

    def mask(self) -> NDArray[np.uint32]:
        """Return which tokens may come next, uint32 [n_words]; overwritten by the next call.

        Bit i % 32 of word i // 32 is token i. Raises GrammarError when the grammar became too
        complex to be followed.
        """
        if self._n_ends:
            return _only(self._mask, self.tokens.eog_ids)
        begun = time.thread_time()
        self._state.mask(self._mask)
        if self._state.is_error:
            raise library_error(self._state)
        if time.thread_time() - begun > MASK_SECONDS:
            raise GrammarError(
                "The grammar is too complex to be followed: it takes too long to tell what may "
                "come next. Let fewer of its rules begin in the same way."
            )
        return self._mask

    def apply(self, logits: NDArray[np.float32]) -> None:
        """Set the logits of tokens that may not come next to -inf, in place.

        `logits` is float32 [n_tokens]. Raises GrammarError as `mask` does.
        """
        limits = _LIMITS.take(self.mask().view(np.uint8), axis=0).ravel()
        known = logits[: len(limits)]
        np.minimum(known, limits[: len(known)], out=known)
        logits[len(limits) :] = -np.inf

    def accepts(self, token: int) -> bool:
        """Whether a token may come next; nothing changes."""
        if token in self.tokens.eog_ids:
            return self.may_end
        return self._can_follow([token])

    def accept(self, token: int) -> None:
        """Take a token; raises InternalError for one that may not come next."""
        if not self.accepts(token):
            raise InternalError(f"The token {token} does not fit the grammar here.")
        if token in self.tokens.eog_ids:
            self._n_ends += 1
            self._taken.append(0)
            return
        self._consume([token])
        self._taken.append(1)

    def accept_text(self, text: bytes) -> bool:
        """Take a text as one step, however it is spelt in tokens; False, and no change, if it
        does not fit. Raises GrammarError if the model cannot spell it.
        """
        ids = self.tokens.spell(text)
        if not self._can_follow(ids):
            return False
        self._consume(ids)
        self._taken.append(len(ids))
        return True

    def rollback(self, n_steps: int) -> None:
        """Forget the last `n_steps` accepted tokens (or texts)."""
        if n_steps > len(self._taken):
            raise InternalError(f"{n_steps} tokens cannot be taken back from {len(self._taken)}.")
        n_back = 0
        for _ in range(n_steps):
            n = self._taken.pop()
            n_back += n
            self._n_ends -= n == 0 and self._n_ends > 0
        if n_back and not self._state.rollback(n_back):
            raise library_error(self._state)

    def clone(self) -> "Matcher":
        """Return a copy that goes its own way from here."""
        made = Matcher(self.tokens, self._state.clone())
        made._taken, made._n_ends = list(self._taken), self._n_ends
        return made

    def _can_follow(self, ids: list[int]) -> bool:
        if self._n_ends or any(not 0 <= token < self.tokens.n_tokens for token in ids):
            return False
        if not all(self.tokens.pieces[token] for token in ids):
            return False
        fits = self._state.n_fitting(ids) == len(ids)
        if self._state.is_error:
            raise library_error(self._state)
        return fits

    def _consume(self, ids: list[int]) -> None:
        if ids and not self._state.consume(ids):
            raise library_error(self._state)


def _only(mask: NDArray[np.uint32], ids: frozenset[int]) -> NDArray[np.uint32]:
    mask.fill(0)
    for token in ids:
        mask[token // 32] |= np.uint32(1 << token % 32)
    return mask
