"""Text to ids: special tokens are cut out first, then the family tokenizes what is between."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.text.special import (
    CONTROL,
    STRIP_LEFT,
    STRIP_RIGHT,
    UNKNOWN,
    USER_DEFINED,
)
from engine.text.strings import StringTable, bytes_address, run, string_array


class TextTokenizer(Protocol):
    """One family's way with text that holds no special tokens."""

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Return the ids of each text; before each is a special token, or nothing."""


class SpecialTokens:
    """Finds the special tokens of a vocabulary in a text: longer ones first, all over the text.

    Decision: of special tokens of the same length that overlap, the one further left is taken;
    the reference leaves that to an unstable sort.
    """

    def __init__(self, tokens: StringTable, attributes: NDArray[np.uint8]) -> None:
        is_special = (attributes & (CONTROL | USER_DEFINED | UNKNOWN)) != 0
        self._ids = np.flatnonzero(is_special)
        texts = [tokens[i] for i in self._ids.tolist()]
        self._table = StringTable(string_array(texts))
        self._lengths = np.array(sorted({len(text) for text in texts}, reverse=True), np.int64)
        chosen = attributes[self._ids]
        self._any = np.ones(len(texts), np.uint8)
        self._user_defined = ((chosen & (CONTROL | UNKNOWN)) == 0).astype(np.uint8)
        left, right = (chosen & STRIP_LEFT) != 0, (chosen & STRIP_RIGHT) != 0
        self._strip = (left + 2 * right).astype(np.uint8)
        self._starts = tuple(
            _beginnings([t for t, wanted in zip(texts, allowed, strict=True) if wanted])
            for allowed in (self._user_defined, self._any)
        )

    def partition(self, text: str, parse_special: bool, plain: bytes = b"") -> Iterator[str | int]:
        """Yield the stretches of `text` and the special tokens between them, none of them empty.

        Without `parse_special` control and unknown tokens are plain text; and so is one that
        would take a byte of the text at which `plain` (as long as the text in UTF-8, or empty)
        holds 1.
        """
        raw = text.encode()
        at = 0
        for start, end, token in self._found(raw, parse_special, plain):
            if start > at:
                yield raw[at:start].decode("utf-8", "replace")
            yield token
            at = end
        if at == 0:
            if text:
                yield text
        elif at < len(raw):
            yield raw[at:].decode("utf-8", "replace")

    def _found(self, raw: bytes, parse_special: bool, plain: bytes) -> list[list[int]]:
        """Return (start, end, token) of every special token, by start."""
        positions = self._positions(raw, self._starts[parse_special])
        if len(positions) == 0:
            return []
        allowed = self._any if parse_special else self._user_defined
        plain = plain if 1 in plain else b""
        occupied = np.zeros(len(raw), np.uint8)
        prefix = np.empty(len(raw) + 1, np.int64)
        found, result = np.empty((len(positions), 3), np.int64), np.zeros(1, np.int64)
        run(
            "partition",
            text=bytes_address(raw),
            n_bytes=len(raw),
            table=self._table.address,
            lengths=self._lengths.ctypes.data,
            n_lengths=len(self._lengths),
            allowed=allowed.ctypes.data,
            allowed_plain=self._user_defined.ctypes.data,
            plain=bytes_address(plain),
            strip=self._strip.ctypes.data,
            positions=positions.ctypes.data,
            n_positions=len(positions),
            occupied=occupied.ctypes.data,
            prefix=prefix.ctypes.data,
            found=found.ctypes.data,
            result=result.ctypes.data,
        )
        found = found[: result[0]]
        found[:, 2] = self._ids[found[:, 2]]
        return sorted(found.tolist())

    def _positions(
        self, raw: bytes, starts: tuple[NDArray[np.uint8], NDArray[np.uint8]]
    ) -> NDArray[np.int64]:
        """Return where a special token may begin, int64 [n]."""
        first, second = starts
        positions, result = np.empty(0, np.int64), np.zeros(1, np.int64)
        for _ in range(2):  # counted, then written
            run(
                "candidates",
                text=bytes_address(raw),
                n_bytes=len(raw),
                first=first.ctypes.data,
                second=second.ctypes.data,
                positions=positions.ctypes.data if len(positions) else 0,
                result=result.ctypes.data,
            )
            if result[0] == 0:
                break
            positions = positions if len(positions) else np.empty(result[0], np.int64)
        return positions


def _beginnings(texts: list[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return which bytes begin a text, uint8 [256], and which two do, a bitmap uint8 [8192]."""
    first, second = np.zeros(256, np.uint8), np.zeros((256, 256), np.uint8)
    for text in texts:
        first[text[0]] = 1
        if len(text) > 1:
            second[text[0], text[1]] = 1
        else:
            second[text[0]] = 1
    return first, np.packbits(second, bitorder="little")
