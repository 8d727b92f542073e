"""Pieces: token ids to the bytes they stand for."""

import re

import numpy as np
from numpy.typing import NDArray

from engine.errors import RequestError
from engine.text.bpe import BYTE_OF_CHAR
from engine.text.special import BYTE, CONTROL, NORMAL, UNKNOWN, USER_DEFINED
from engine.text.spm import SPACE
from engine.text.strings import StringTable

_VERBATIM = CONTROL | UNKNOWN | USER_DEFINED


class Pieces:
    """The piece of each token, worked out when first asked for.

    `byte_level`: normal tokens spell bytes by the byte table, else they hold UTF-8 in which U+2581
    is a space. A character outside the byte table stays visible as [UNK_BYTE_0x…].
    """

    def __init__(
        self, tokens: StringTable, attributes: NDArray[np.uint8], byte_level: bool
    ) -> None:
        self._tokens = tokens
        self._attributes = attributes
        self._byte_level = byte_level
        self._known: dict[int, bytes] = {}

    def piece(self, token: int, special: bool = True) -> bytes:
        """Return the bytes of a token; without `special`, control and unknown tokens have none.

        Raises RequestError for an id outside the vocabulary.
        """
        known = self._known.get(token)
        if known is None:
            self.require(token)
            known = self._known[token] = self._decode(token)
        if not special and self._attributes[token] & (CONTROL | UNKNOWN):
            return b""
        return known

    def require(self, token: int) -> None:
        """Raise RequestError for an id outside the vocabulary."""
        if not 0 <= token < len(self._tokens):
            raise RequestError(
                f"There is no token {token}: this vocabulary has {len(self._tokens):,}."
            )

    def _decode(self, token: int) -> bytes:
        text, attribute = self._tokens[token], int(self._attributes[token])
        if attribute & _VERBATIM:
            return text
        if attribute & NORMAL:
            return _spelled(text) if self._byte_level else text.replace(_SPACE, b" ")
        return _byte_value(text) if attribute & BYTE else b""


_SPACE = SPACE.encode()


def _spelled(text: bytes) -> bytes:
    """Return the bytes that a byte-level token spells."""
    out = bytearray()
    for char in text.decode("utf-8", "replace"):
        value = BYTE_OF_CHAR.get(char)
        if value is None:
            out += f"[UNK_BYTE_0x{char.encode().hex()}".encode() + text + b"]"
        else:
            out.append(value)
    return bytes(out)


def _byte_value(text: bytes) -> bytes:
    """Return the byte of a token written <0xHH>; nothing for any other text."""
    try:
        return bytes((int(text[3:5], 16),)) if text[:3] == b"<0x" else b""
    except ValueError:
        return b""


def clean(text: bytes) -> bytes:
    """Return a text without the spaces that word-wise vocabularies put before punctuation."""
    text = re.sub(rb" ([?!.,])", rb"\1", text)
    text = text.replace(b" ' ", b"'")
    return re.sub(rb" ('s|'m|'re|'ve)", rb"\1", text)
