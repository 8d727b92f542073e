"""RWKV: bytes cut greedily into the longest tokens, whose stored texts are escaped."""

import re

from engine.text.longest import longest_tokens
from engine.text.strings import StringTable, string_array

_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.|\Z)", re.DOTALL)
_CONTROLS = {b"t": b"\t", b"n": b"\n", b"r": b"\r"}


def unescaped(tokens: StringTable) -> StringTable:
    """Return the strings without escapes: \\t \\n \\r \\xHH; any other is the escaped sign."""
    return StringTable(string_array([_ESCAPE.sub(_value, t) for t in tokens.strings.tolist()]))


def _value(escape: re.Match[bytes]) -> bytes:
    sign = escape[1]
    if len(sign) == 3:
        return bytes((int(sign[1:], 16),))
    return _CONTROLS.get(sign, sign)


class GreedyBytes:
    """The tokenizer of the family `rwkv`; it takes the unescaped strings."""

    def __init__(self, strings: StringTable, unk: int) -> None:
        self._strings, self._unk = strings, unk

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Return the ids of each text."""
        return longest_tokens([t.encode() for t in texts], self._strings, self._unk, False)
