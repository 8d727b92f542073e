"""How JSON values are written: terminals for strings, keys, numbers and what stands between.

Decision: a text with a condition (a pattern, a length, a key that must not be another) has one
spelling for each character: as itself, or by its short escape where JSON demands one. So the
complement of a set of strings is the complement of their spellings. A string without a condition
may use every escape.
"""

from fractions import Fraction

from engine.grammar.lark import code_point, regex
from engine.grammar.rules import (
    LAST,
    Characters,
    Choice,
    Node,
    Range,
    Repeat,
    Sequence,
    characters,
    literal,
)

SPACE = r"(?: |\r?\n{1,2}[ \t]{0,64})?"
NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
PLAIN_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?"  # one spelling up to zeros at the end
INTEGER = r"-?(?:0|[1-9][0-9]*)(?:\.0+)?"
_ESCAPES = {0x22: '\\"', 0x5C: "\\\\", 8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r"}
_ESCAPED: list[Range] = [(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)]
_HIGH = r"\\u[dD][89abAB][0-9a-fA-F]{2}"
_ANY_CHAR = (
    r'(?:[^"\\\x{0}-\x{1F}]|\\["\\\x{2F}bfnrt]|\\u(?:[0-9abcefABCEF][0-9a-fA-F]{3}|[dD][0-7]'
    rf"[0-9a-fA-F]{{2}})|{_HIGH}\\u[dD][c-fC-F][0-9a-fA-F]{{2}})"
)
ANY_STRING = f'"{_ANY_CHAR}*"'


def any_string(least: int, most: int | None) -> str:
    """Return the regular expression of strings of so many characters, however they are spelt."""
    return f'"{_ANY_CHAR}{{{least},{"" if most is None else most}}}"'


def spelt(node: Node) -> str:
    """Return the regular expression of the JSON strings whose text matches a node."""
    return '"' + regex(_escaped(node)) + '"'


def spelt_length(least: int, most: int | None) -> str:
    """Return the regular expression of strings of so many characters, in their one spelling."""
    return spelt(Repeat(characters([(0, LAST)]), least, most))


def spelt_text(text: str) -> str:
    """Return the regular expression of one JSON string."""
    if any(0xD800 <= ord(char) < 0xE000 for char in text):
        return spelt(characters([]))  # half a surrogate pair is no text
    return '"' + "".join(_spelt_char(ord(char)) for char in text) + '"'


def _spelt_char(code: int) -> str:
    if code in _ESCAPES or code < 0x20:
        return "".join(map(code_point, map(ord, _ESCAPES.get(code, f"\\u{code:04x}"))))
    return code_point(code)


def _escaped(node: Node) -> Node:
    if isinstance(node, Characters):
        return _escaped_set(node)
    if isinstance(node, Choice):
        return Choice(tuple(_escaped(option) for option in node.options))
    if isinstance(node, Repeat):
        return Repeat(_escaped(node.part), node.least, node.most)
    if isinstance(node, Sequence):
        return Sequence(tuple(_escaped(part) for part in node.parts))
    raise TypeError(f"{type(node).__name__} is no part of a pattern")


def _escaped_set(node: Characters) -> Node:
    inside = [code for low, high in node.ranges for code in _escaped_codes(low, high)]
    if not inside:
        return node
    outside = characters([*_ESCAPED, *characters(node.ranges, negated=True).ranges], negated=True)
    options: list[Node] = [outside] if outside.ranges else []
    options += [literal(_ESCAPES.get(code, f"\\u{code:04x}")) for code in inside]
    return Choice(tuple(options))


def _escaped_codes(low: int, high: int) -> list[int]:
    return [code for code in (*range(0x20), 0x22, 0x5C) if low <= code <= high]


def number_literal(value: Fraction) -> str | None:
    """Return the regular expression of one number, or None if it has no end in decimals."""
    digits = decimals(abs(value))
    if digits is None:
        return None
    whole, _, part = digits.partition(".")
    sign = "-" if value < 0 else "-?" if value == 0 else ""
    return sign + whole + (rf"\.{part}0*" if part else r"(?:\.0+)?")


def decimals(value: Fraction) -> str | None:
    """Return a number of 0 or more in decimals without zeros at the end; None without an end."""
    whole, rest = divmod(value.numerator, value.denominator)
    part = ""
    while rest:
        if len(part) > 400:
            return None
        digit, rest = divmod(rest * 10, value.denominator)
        part += str(digit)
    return f"{whole}.{part}" if part else str(whole)
