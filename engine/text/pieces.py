"""Pieces: token ids to the bytes they stand for."""

import re
from enum import Enum, auto
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.errors import RequestError
from engine.text.bpe import BYTE_SPELLING
from engine.text.signatures import (
    NOT_A_BYTE,
    PIECE_BYTE,
    PIECE_EMPTY,
    PIECE_TEXT,
    PIECE_VERBATIM,
)
from engine.text.special import BYTE, CONTROL, NORMAL, UNKNOWN, USER_DEFINED
from engine.text.strings import StringTable, run

_BYTE_OF_CHAR = np.full(512, NOT_A_BYTE, np.uint16)
_BYTE_OF_CHAR[BYTE_SPELLING] = np.arange(256)


class Spelling(Enum):
    """What the stored text of a normal token is."""

    BYTES = auto()  # characters of the byte table
    ESCAPED_SPACES = auto()  # UTF-8 in which U+2581 is a space
    VERBATIM = auto()


class _Packed(NamedTuple):
    """The pieces of all tokens: token t is joined[starts[t] : starts[t + 1]], unless it is odd."""

    joined: bytes
    starts: memoryview
    odd: dict[int, bytes]


class Pieces:
    """The pieces of a vocabulary, worked out together when the first one is asked for.

    A character outside the byte table, where tokens spell bytes, stays visible: [UNK_BYTE_0x…].
    """

    def __init__(
        self, tokens: StringTable, attributes: NDArray[np.uint8], spelling: Spelling
    ) -> None:
        self._tokens = tokens
        self._attributes = attributes
        self._spelling = spelling

    def piece(self, token: int, special: bool = True) -> bytes:
        """Return the bytes of a token; without `special`, control and unknown tokens have none.

        Raises RequestError for an id outside the vocabulary.
        """
        self.require(token)
        if not special and self._attributes[token] & (CONTROL | UNKNOWN):
            return b""
        packed = self._packed
        if token in packed.odd:
            return packed.odd[token]
        return packed.joined[packed.starts[token] : packed.starts[token + 1]]

    def joined(self, special: bool = True) -> tuple[bytes, NDArray[np.int64]]:
        """Return the bytes of all tokens in one, and where each begins, int64 [n + 1].

        Without `special` as in `piece`. Milliseconds for 262k tokens; a copy of a few megabytes.
        """
        packed, hidden = self._packed, dict[int, bytes]()
        if not special:
            marked = np.flatnonzero(self._attributes & (CONTROL | UNKNOWN))
            hidden = dict.fromkeys(marked.tolist(), b"")
        other = {**packed.odd, **hidden}
        if not other:
            return packed.joined, np.asarray(packed.starts, np.int64)
        return _with_others(packed, other)

    def require(self, token: int) -> None:
        """Raise RequestError for an id outside the vocabulary."""
        if not 0 <= token < len(self._tokens):
            raise RequestError(
                f"There is no token {token}: this vocabulary has {len(self._tokens):,}."
            )

    @cached_property
    def _packed(self) -> _Packed:
        n = len(self._tokens)
        kinds = _kinds(self._attributes)
        if self._spelling is Spelling.VERBATIM:
            kinds[kinds == PIECE_TEXT] = PIECE_VERBATIM
        out = np.empty(self._tokens.n_bytes, np.uint8)
        starts, odd = np.empty(n + 1, np.int64), np.zeros(n, np.uint8)
        run(
            "pieces",
            table=self._tokens.address,
            kinds=kinds.ctypes.data,
            byte_of_char=_BYTE_OF_CHAR.ctypes.data if self._spelling is Spelling.BYTES else 0,
            pieces=out.ctypes.data,
            starts=starts.ctypes.data,
            odd=odd.ctypes.data,
        )
        spelled = {token: _spelled(self._tokens[token]) for token in np.flatnonzero(odd).tolist()}
        return _Packed(out[: starts[n]].tobytes(), starts.data, spelled)


def _with_others(packed: _Packed, other: dict[int, bytes]) -> tuple[bytes, NDArray[np.int64]]:
    """Return the packed pieces with some of them replaced."""
    old = np.asarray(packed.starts, np.int64)
    lengths, parts, done = np.diff(old), list[bytes](), 0
    for token in sorted(other):
        parts += [packed.joined[done : old[token]], other[token]]
        lengths[token], done = len(other[token]), int(old[token + 1])
    parts.append(packed.joined[done:])
    return b"".join(parts), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _kinds(attributes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return how each token's text is read; what is marked twice goes by the first mark here."""
    verbatim = (attributes & (CONTROL | UNKNOWN | USER_DEFINED)) != 0
    marks = [verbatim, (attributes & NORMAL) != 0, (attributes & BYTE) != 0]
    return np.select(marks, [PIECE_VERBATIM, PIECE_TEXT, PIECE_BYTE], PIECE_EMPTY).astype(np.uint8)


def _spelled(text: bytes) -> bytes:
    """Return the bytes that a byte-level token spells, its strange characters left visible."""
    out = bytearray()
    for char in text.decode("utf-8", "replace"):
        value = _BYTE_OF_CHAR[ord(char)] if ord(char) < len(_BYTE_OF_CHAR) else NOT_A_BYTE
        if value == NOT_A_BYTE:
            out += f"[UNK_BYTE_0x{char.encode().hex()}".encode() + text + b"]"
        else:
            out.append(value)
    return bytes(out)


def clean(text: bytes) -> bytes:
    """Return a text without the spaces that word-wise vocabularies put before punctuation."""
    text = re.sub(rb" ([?!.,])", rb"\1", text)
    text = text.replace(b" ' ", b"'")
    return re.sub(rb" ('s|'m|'re|'ve)", rb"\1", text)
