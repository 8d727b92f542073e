"""Regular expressions (the part of ECMA-262 that is regular) to nodes."""

import unicodedata
from functools import cache

from engine.errors import GrammarError
from engine.grammar.cursor import Cursor
from engine.grammar.rules import (
    LAST,
    Characters,
    Choice,
    Node,
    Range,
    Repeat,
    Sequence,
    characters,
    joined,
    walk,
)

MAX_REPEAT = 100_000  # times one item may occur, nested repetitions multiplied
MAX_DEPTH = 100  # groups inside groups
MAX_ITEMS = 20_000  # characters, classes, groups and alternatives
ANY_CHARACTER = characters([(0, LAST)])
ANY_TEXT = Repeat(ANY_CHARACTER, 0, None)
_BEGIN, _END = Choice(()), Choice((Choice(()),))  # stand for ^ and $ while reading

_DIGIT: list[Range] = [(0x30, 0x39)]
_WORD: list[Range] = [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]
_BREAKS: list[Range] = [(0xA, 0xA), (0xD, 0xD), (0x2028, 0x2029)]
_SPACE: list[Range] = [
    *[(0x9, 0xD), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A)],
    *[(0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)],
]
_CLASSES = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_CONTROLS = {"n": 0xA, "t": 0x9, "r": 0xD, "f": 0xC, "v": 0xB, "0": 0}
_CATEGORIES = {
    "Letter": "L",
    "Lowercase_Letter": "Ll",
    "Uppercase_Letter": "Lu",
    "Mark": "M",
    "Number": "N",
    "Decimal_Number": "Nd",
    "digit": "Nd",
    "Punctuation": "P",
    "punct": "P",
    "Symbol": "S",
    "Separator": "Z",
    "Space_Separator": "Zs",
    "Other": "C",
    "Control": "Cc",
}


def read_pattern(text: str, *, whole: bool = False) -> Node:
    """Return the node of the texts that a regular expression matches.

    The match may lie anywhere in the text, as JSON Schema has it; with `whole` it must be all
    of it. Raises GrammarError for what is not regular (look-around, back references) or not ECMA.
    """
    if not isinstance(text, str):
        raise GrammarError(f"A pattern must be a text, but is {repr(text)[:60]}.")
    reader = _Reader(text)
    node = reader.choice(0)
    if reader.at.next:
        raise reader.at.error("has a “)” without its “(”")
    is_choice = isinstance(node, Choice) and node not in (_BEGIN, _END)
    options = node.options if is_choice and isinstance(node, Choice) else (node,)
    return Choice(tuple(_anchored(option, whole, reader) for option in options))


def _anchored(option: Node, whole: bool, reader: "_Reader") -> Node:
    """Take the anchors off one alternative and put "any text" where there was none."""
    parts = list(option.parts) if isinstance(option, Sequence) else [option]
    begins, ends = whole, whole
    while parts and parts[0] == _BEGIN:
        parts, begins = parts[1:], True
    while parts and parts[-1] == _END:
        parts, ends = parts[:-1], True
    if any(node in (_BEGIN, _END) for part in parts for node in walk(part)):
        raise reader.at.error("uses ^ or $ inside, which cannot be honoured", 0)
    return joined([*([] if begins else [ANY_TEXT]), *parts, *([] if ends else [ANY_TEXT])])


class _Reader:
    def __init__(self, text: str) -> None:
        self.at = Cursor(text, "pattern")
        self.n_items = 0

    def choice(self, depth: int) -> Node:
        options = [self._sequence(depth)]
        while self.at.skips("|"):
            options.append(self._sequence(depth))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        weights: list[int] = []
        may_repeat = False  # a repetition is not repeated: (a*)* is, a** is a mistake
        self._count_item()
        while (char := self.at.next) and char not in "|)":
            if bounds := self._bounds():
                if not may_repeat or parts[-1] in (_BEGIN, _END):
                    raise self.at.error("repeats nothing")
                parts[-1], weights[-1] = self._repeat(parts[-1], weights[-1], *bounds)
                may_repeat = False
                continue
            node, weight = self._item(char, depth)
            may_repeat = True
            parts.append(node)
            weights.append(weight)
        self.weight = max(weights, default=1)
        # A group is kept as one part, so that what follows repeats all of it.
        return joined(parts)

    def _bounds(self) -> tuple[int, int | None] | None:
        begin = self.at.place
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.at.skips(sign):
                return bounds
        if not self.at.skips("{"):
            return None
        least = self.at.number()
        most = least
        if least is not None and self.at.skips(","):
            most = self.at.number()
        if least is None or not self.at.skips("}"):
            self.at.place = begin  # a brace that is only a brace
            return None
        if most is not None and most < least:
            raise self.at.error("ends a repetition below its begin", begin)
        return least, most

    def _repeat(self, node: Node, weight: int, least: int, most: int | None) -> tuple[Node, int]:
        self.at.skips("?")  # shortest match first: the same texts
        if self.at.next == "+":
            raise self.at.error("has a possessive repetition, which is not supported")
        weight *= max(1, most or least)
        if weight > MAX_REPEAT:
            raise self.at.error(f"nests repetitions to more than {MAX_REPEAT:,} times")
        return Repeat(node, least, most), weight

    def _count_item(self) -> None:
        self.n_items += 1
        if self.n_items > MAX_ITEMS:
            raise self.at.error(f"is larger than {MAX_ITEMS:,} items")

    def _item(self, char: str, depth: int) -> tuple[Node, int]:
        self._count_item()
        if char == "(":
            return self._group(depth)
        self.at.take()
        if char == "^":
            return _BEGIN, 1
        if char == "$":
            return _END, 1
        if char == ".":
            return characters(_BREAKS, negated=True), 1
        if char == "[":
            return self._class(), 1
        if char == "\\":
            if self.at.next in ("b", "B") or self.at.next in "123456789" and self.at.next:
                raise self.at.error(f"uses \\{self.at.next}, which is not regular")
            return characters(self._escape()), 1
        return characters([(ord(char), ord(char))]), 1

    def _group(self, depth: int) -> tuple[Node, int]:
        begin = self.at.place
        if depth >= MAX_DEPTH:
            raise self.at.error(f"nests groups deeper than {MAX_DEPTH}")
        self.at.take()
        if self.at.skips("?") and not self.at.skips(":"):
            named = self.at.skips("P<") or self.at.skips("<")
            if not named or self.at.next in ("=", "!", ""):
                raise self.at.error("uses look-around or a flag, which is not supported", begin)
            while self.at.take() != ">":
                pass
        body = self.choice(depth + 1)
        if not self.at.skips(")"):
            raise self.at.error("opens a group that is never closed", begin)
        return (Choice((body,)) if isinstance(body, Sequence) else body), self.weight

    def _escape(self, in_class: bool = False) -> list[Range]:
        """Return the code points of what follows a backslash."""
        begin = self.at.place
        kind = self.at.take()
        if kind in "dDwWsS":
            found = _CLASSES[kind.lower()]
            return found if kind.islower() else list(characters(found, negated=True).ranges)
        if kind in "pP":
            return list(characters(self._category(), negated=kind == "P").ranges)
        if kind in _CONTROLS:
            return [(_CONTROLS[kind],) * 2]
        if kind == "b" and in_class:
            return [(8, 8)]
        if kind == "c":
            return [(ord(self.at.take()) % 32,) * 2]
        if kind in "xu":
            return [(self._code(kind),) * 2]
        if kind.isascii() and kind.isalnum():
            raise self.at.error(f"has an unknown escape “\\{kind}”", begin)
        return [(ord(kind),) * 2]

    def _code(self, kind: str) -> int:
        if kind == "x":
            return self.at.hex(2)
        if self.at.skips("{"):
            end = self.at.text.find("}", self.at.place)
            code = self.at.hex(min(6, max(1, end - self.at.place)))
            if not self.at.skips("}"):
                raise self.at.error("needs “}” after a code point")
            return code
        code = self.at.hex(4)
        if 0xD800 <= code < 0xDC00 and self.at.skips("\\u"):
            low = self.at.hex(4)
            return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
        return code

    def _category(self) -> list[Range]:
        begin = self.at.place
        name = self.at.take()
        if name == "{":
            name = ""
            while (char := self.at.take()) != "}":
                name += char
        name = name.removeprefix("General_Category=").removeprefix("gc=")
        found = category(_CATEGORIES.get(name, name))
        if not found:
            raise self.at.error(
                f"uses the Unicode property “{name[:40]}”, which is not known", begin
            )
        return list(found)

    def _class(self) -> Characters:
        begin = self.at.place - 1
        negated = self.at.skips("^")
        ranges: list[Range] = []
        while not self.at.skips("]"):
            if not self.at.next:
                raise self.at.error("opens a class that is never closed", begin)
            low = self._member()
            ahead = self.at.text[self.at.place : self.at.place + 2]
            if ahead[:1] == "-" and ahead[1:] not in ("]", "") and _is_single(low):
                self.at.take()
                high = self._member()
                if not _is_single(high) or high[0][0] < low[0][0]:
                    raise self.at.error("has a range that ends before it begins")
                low = [(low[0][0], high[0][0])]
            ranges += low
        return characters(ranges, negated)

    def _member(self) -> list[Range]:
        char = self.at.take()
        return self._escape(in_class=True) if char == "\\" else [(ord(char), ord(char))]


def _is_single(ranges: list[Range]) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


@cache
def category(name: str) -> tuple[Range, ...]:
    """Return the code points of a general category ("Lu", or "L" for all letters)."""
    if not 1 <= len(name) <= 2:
        return ()
    codes = (c for c in range(LAST + 1) if unicodedata.category(chr(c)).startswith(name))
    return characters((code, code) for code in codes).ranges
