"""Texts of all tokens of a vocabulary in one stretch of bytes, and the breakers found in them."""

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.errors import RequestError
from engine.native.buffers import address
from engine.sampling import words as w

MAX_BREAKERS = 64
MAX_BREAKER_BYTES = 40
MAX_TAIL_TOKENS = 20
MAX_KNOWN = 16  # texts, sets of breakers and of biases that are kept for a vocabulary
_T = TypeVar("_T")


class Vocabulary(Protocol):
    """What a chain needs of a vocabulary; ids of -1 are not there."""

    n_tokens: int
    suppressed: Any  # token ids that may never be chosen

    @property
    def eos(self) -> int:
        """Token that ends a text."""

    @property
    def eot(self) -> int:
        """Token that ends a turn."""

    @property
    def eog_ids(self) -> frozenset[int]:
        """Tokens that end generation."""

    def joined_pieces(self, special: bool = True) -> tuple[bytes, NDArray[np.int64]]:
        """The bytes of all tokens in one, and where each begins, [n_tokens + 1]."""

    def tokenize(self, text: str, parse_special: bool = ..., add_special: bool = ...) -> list[int]:
        """Text to token ids."""


class TokenTexts:
    """The bytes of every token one after the other; token t is bytes[starts[t] : starts[t + 1]]."""

    def __init__(self, vocab: Vocabulary, special: bool) -> None:
        self.whole, self.starts = vocab.joined_pieces(special)
        self.bytes = np.frombuffer(self.whole + b"\0", np.uint8)

    @cached_property
    def _by_last_byte(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Tokens by the last byte of their text, and where those of each byte begin [257]."""
        with_text = np.flatnonzero(np.diff(self.starts))
        last = self.bytes[self.starts[with_text + 1] - 1]
        order = np.argsort(last, kind="stable")
        return with_text[order], np.searchsorted(last[order], np.arange(257))

    def holding(self, text: bytes) -> NDArray[np.int64]:
        """Return the tokens whose text contains `text`, int64, each once."""
        n = max(0, len(self.bytes) - len(text))
        places = np.flatnonzero(self.bytes[:n] == text[0])
        for i in range(1, len(text)):
            places = places[self.bytes[places + i] == text[i]]
        tokens = np.searchsorted(self.starts, places, side="right") - 1
        return np.unique(tokens[places + len(text) <= self.starts[tokens + 1]])

    def ending(self, text: bytes) -> NDArray[np.int64]:
        """Return the tokens whose text ends with `text`, int64."""
        tokens, bounds = self._by_last_byte
        found = tokens[bounds[text[-1]] : bounds[text[-1] + 1]]
        ends = self.starts[found + 1]
        found = found[ends - self.starts[found] >= len(text)]
        for i in range(2, len(text) + 1):
            found = found[self.bytes[self.starts[found + 1] - i] == text[-i]]
        return np.sort(found)


class Breakers:
    """Token sequences that end a repetition: each a head token and the tail that follows it."""

    def __init__(self, tails_of: dict[int, list[tuple[int, ...]]]) -> None:
        heads = sorted(tails_of)
        tails = [tail for head in heads for tail in tails_of[head]]
        counts = [len(tails_of[head]) for head in heads]
        self._heads = np.array(heads, np.int32)
        self._tails_of_head = np.cumsum([0, *counts]).astype(np.int64)
        self._tail_starts = np.cumsum([0, *map(len, tails)]).astype(np.int64)
        self._tail_tokens = np.array([t for tail in tails for t in tail] or [0], np.int32)
        self._block = np.zeros(w.BREAKER_WORDS, np.int64)
        self._block[w.N_HEADS], self._block[w.HEADS] = len(heads), address(self._heads)
        self._block[w.TAILS_OF_HEAD] = address(self._tails_of_head)
        self._block[w.TAIL_STARTS] = address(self._tail_starts)
        self._block[w.TAIL_TOKENS] = address(self._tail_tokens)

    @property
    def address(self) -> int:
        """Where kernels find them; valid while this object lives."""
        return address(self._block)


def find_tails(vocab: Vocabulary, breakers: Sequence[str]) -> dict[int, list[tuple[int, ...]]]:
    """Return, for each token that holds or begins a breaker, the tails that complete it.

    A token that holds a whole breaker has the empty tail. Breakers are cut to 40 bytes, tails to
    20 tokens. Raises RequestError for more than 64 of them.
    """
    if len(breakers) > MAX_BREAKERS:
        raise RequestError(
            f"“dry_sequence_breakers” holds {len(breakers):,} texts, more than {MAX_BREAKERS}."
        )
    texts = texts_of(vocab, special=True)
    tails: dict[int, list[tuple[int, ...]]] = {}
    for text in breakers:
        breaker = text.encode("utf-8", "surrogatepass")[:MAX_BREAKER_BYTES]
        for head, tail in _completions(vocab, texts, breaker) if breaker else ():
            known = tails.setdefault(head, [])
            if tail not in known:
                known.append(tail)
    return tails


def _completions(
    vocab: Vocabulary, texts: TokenTexts, breaker: bytes
) -> Iterator[tuple[int, tuple[int, ...]]]:
    whole = set(texts.holding(breaker).tolist())
    yield from ((head, ()) for head in sorted(whole))
    for n in range(1, len(breaker)):
        heads = [head for head in texts.ending(breaker[:n]).tolist() if head not in whole]
        if heads:
            rest = breaker[n:].decode("utf-8", "replace")
            tail = tuple(vocab.tokenize(rest, parse_special=False, add_special=False))
            yield from ((head, tail[:MAX_TAIL_TOKENS]) for head in heads)


# What is worked out once for a vocabulary goes when the vocabulary goes.
_LOCK = threading.Lock()  # requests are prepared on one thread and changed on another
_KNOWN: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()


def once(vocab: Vocabulary, key: Any, make: Callable[[], _T]) -> _T:
    """Return what was made for a key, or make it; what was wanted least lately is forgotten."""
    with _LOCK:
        known = _KNOWN.setdefault(vocab, {})
        found = known.pop(key, None)
        if found is not None:
            known[key] = found
            return found
    made = make()
    with _LOCK:
        known[key] = made
        while len(known) > MAX_KNOWN:
            del known[next(iter(known))]
    return made


def texts_of(vocab: Vocabulary, special: bool) -> TokenTexts:
    """Return the texts of a vocabulary, with or without those of special tokens."""
    return once(vocab, ("texts", special), lambda: TokenTexts(vocab, special))


def breakers_of(vocab: Vocabulary, breakers: tuple[str, ...]) -> Breakers:
    """Return the breakers of a vocabulary for these texts."""
    return once(vocab, breakers, lambda: Breakers(find_tails(vocab, breakers)))
