"""Marked: text whose characters remember whether a message or the template wrote them.

What a person writes must never become a control token, even where it looks like one. Templates cut,
trim and join text before it is tokenized, so the origin travels with every character through every
operation a template has. Text without a single character of a message stays a plain `str`.
"""

import re
import string
from collections.abc import Callable, Iterable, Iterator
from typing import Any

MESSAGE, TEMPLATE = b"m", b"t"
MAX_WIDTH = 999  # of a padded number or text in a format
_CONVERSIONS: dict[str, Callable[[Any], str]] = {"s": str, "r": repr, "a": ascii}
_PERCENT = re.compile(r"%(?:\((?P<name>[^)]*)\))?[#0\- +]*(?P<width>\d*)(?:\.(?P<digits>\d*))?(.)")


class Marked(str):
    """A str with `origin`: one byte for each character, MESSAGE or TEMPLATE."""

    origin: bytes

    def __new__(cls, text: str, origin: bytes) -> "Marked":
        """`origin` is as long as `text`."""
        made = super().__new__(cls, text)
        made.origin = origin
        return made

    def __str__(self) -> str:
        return self

    def __getitem__(self, at: Any) -> str:
        origin = self.origin[at] if isinstance(at, slice) else self.origin[at : at + 1 or None]
        return with_origin(str.__getitem__(self, at), origin)

    def __iter__(self) -> Iterator[str]:
        return (self[i : i + 1] for i in range(len(self)))


def plain(text: str) -> str:
    """Return the same characters without their origin."""
    return str.__str__(text) if isinstance(text, Marked) else text


def from_message(text: str) -> str:
    """Return text that a message wrote."""
    return Marked(plain(text), MESSAGE * len(text)) if text else ""


def with_origin(text: str, origin: bytes) -> str:
    """Return text with the origin of each character; plain if the template wrote all."""
    return Marked(text, origin) if MESSAGE in origin else text


def origin_of(text: str) -> bytes:
    """Return MESSAGE or TEMPLATE for each character, as one bytes."""
    return text.origin if isinstance(text, Marked) else TEMPLATE * len(text)


def parts_of(text: str) -> list[tuple[str, bool]]:
    """Return the stretches of text as (text, is from a message), in order."""
    origin, raw, found, at = origin_of(text), plain(text), [], 0
    while at < len(raw):
        other = TEMPLATE if origin[at : at + 1] == MESSAGE else MESSAGE
        end = origin.find(other, at)
        end = len(raw) if end < 0 else end
        found.append((raw[at:end], other == TEMPLATE))
        at = end
    return found


def concat(pieces: Iterable[str]) -> str:
    """Join texts."""
    texts = list(pieces)
    joined = "".join(texts)
    if not any(isinstance(text, Marked) for text in texts):
        return joined
    return with_origin(joined, b"".join(map(origin_of, texts)))


def join(separator: str, texts: Iterable[str]) -> str:
    """Join texts with a separator between them."""
    pieces: list[str] = []
    for text in texts:
        pieces += [separator, text] if pieces else [text]
    return concat(pieces)


def repeat(text: str, n: int) -> str:
    """Return text n times."""
    return with_origin(plain(text) * n, origin_of(text) * n)


def like(text: str, changed: str) -> str:
    """Return `changed`, made from text character by character, or else wholly a message's."""
    if not isinstance(text, Marked):
        return changed
    return Marked(changed, text.origin) if len(changed) == len(text) else from_message(changed)


def wholly(text: str, *sources: Any) -> str:
    """Return text as a message's if any of the values it was made from is."""
    return from_message(text) if any(isinstance(source, Marked) for source in sources) else text


def _strip(name: str) -> Callable[..., str]:
    def strip(text: str, chars: str | None = None) -> str:
        raw = plain(text)
        start = len(raw) - len(raw.lstrip(chars)) if name != "rstrip" else 0
        left = getattr(raw, name)(chars)
        return with_origin(left, origin_of(text)[start : start + len(left)])

    return strip


strip, lstrip, rstrip = _strip("strip"), _strip("lstrip"), _strip("rstrip")


def _place(text: str, pieces: Iterable[str]) -> list[str]:
    """Give pieces of text, in their order, the origin they have in it."""
    raw, origin, at, placed = plain(text), origin_of(text), 0, []
    for piece in pieces:
        at = raw.find(piece, at)
        placed.append(with_origin(piece, origin[at : at + len(piece)]))
        at += len(piece)
    return placed


def split(text: str, separator: str | None = None, limit: int = -1) -> list[str]:
    """As str.split."""
    return _cut(text, plain(text).split(separator, limit), separator)


def rsplit(text: str, separator: str | None = None, limit: int = -1) -> list[str]:
    """As str.rsplit."""
    return _cut(text, plain(text).rsplit(separator, limit), separator)


def _cut(text: str, pieces: list[str], separator: str | None) -> list[str]:
    if not isinstance(text, Marked):
        return pieces
    if separator is None:
        return _place(text, pieces)
    placed, at = [], 0
    for piece in pieces:
        placed.append(with_origin(piece, text.origin[at : at + len(piece)]))
        at += len(piece) + len(separator)
    return placed


def splitlines(text: str, keepends: bool = False) -> list[str]:
    """As str.splitlines."""
    lines, at, placed = plain(text).splitlines(keepends=True), 0, []
    for line in lines:
        shown = line if keepends else line.splitlines()[0]
        placed.append(with_origin(shown, origin_of(text)[at : at + len(shown)]))
        at += len(line)
    return placed


def partition(text: str, separator: str) -> tuple[str, ...]:
    """As str.partition."""
    return tuple(_place(text, plain(text).partition(separator)))


def rpartition(text: str, separator: str) -> tuple[str, ...]:
    """As str.rpartition."""
    return tuple(_place(text, plain(text).rpartition(separator)))


def replace(text: str, old: str, new: str, count: int = -1) -> str:
    """As str.replace; what comes in is as it was, also in origin."""
    if not isinstance(text, Marked) and not isinstance(new, Marked):
        return text.replace(old, new, count)
    if not old:
        return from_message(plain(text).replace("", plain(new), count))
    return join(new, split(text, old, count))


def indent(text: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    """Put spaces, or the text `width`, before each line but the first and blank ones."""
    margin = width if isinstance(width, str) else " " * width
    lines = splitlines(concat([text, "\n"]))  # a final line feed makes a last, empty line
    shown = [
        concat([margin, line]) if (first if i == 0 else line or blank) else line
        for i, line in enumerate(lines)
    ]
    return join("\n", shown)


def format_braces(pattern: str, values: tuple[Any, ...], named: dict[str, Any]) -> str:
    """As str.format, with names and numbers only: no attributes, no widths from values.

    Raises ValueError for what is more than that.
    """
    pieces, n_auto = [], 0
    for literal, name, spec, conversion in string.Formatter().parse(plain(pattern)):
        pieces.append(wholly(literal, pattern))
        if name is None:
            continue
        if name == "":
            name, n_auto = str(n_auto), n_auto + 1
        _require_plain_spec(spec or "")
        if name.isdecimal():
            value = values[int(name)]
        elif name in named:
            value = named[name]
        else:
            raise ValueError(f"the format has no value for {{{name}}}")
        if isinstance(value, str) and not spec and conversion in (None, "s"):
            pieces.append(value)
        else:
            shown = _CONVERSIONS[conversion](value) if conversion else value
            pieces.append(wholly(format(shown, spec or ""), value))
    return concat(pieces)


def _require_plain_spec(spec: str) -> None:
    numbers = [int(digits[:9]) for digits in re.findall(r"\d+", spec)]
    if "{" in spec or max(numbers, default=0) > MAX_WIDTH:
        raise ValueError(f"the format “{spec[:40]}” is not allowed")


def format_percent(pattern: str, values: Any) -> str:
    """As pattern % values; raises ValueError for widths that would not fit a page."""
    given = list(values) if isinstance(values, tuple) else [values]
    pieces, at, raw = [], 0, plain(pattern)
    for found in _PERCENT.finditer(raw):
        pieces.append(wholly(raw[at : found.start()], pattern))
        at = found.end()
        _require_plain_spec(f"{found['width'] or 0}.{found['digits'] or 0}")
        if found[0][-1] == "%":
            pieces.append("%")
        elif found["name"] is not None:
            pieces.append(wholly(found[0] % values, values[found["name"]]))
        elif not given:
            raise ValueError("the format asks for more values than there are")
        else:
            value = given.pop(0)
            as_is = isinstance(value, str) and found[0] == "%s"
            pieces.append(value if as_is else wholly(found[0] % (value,), value))
    pieces.append(wholly(raw[at:], pattern))
    return concat(pieces)
