"""JSON that may not be finished: where a value ends, and the members of an object."""

import json
import re
from typing import Any

_PLAIN = re.compile(r"[^\s,\]}]*")
_SPACE = re.compile(r"\s*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_PARTS = re.compile(r'"(?:[^"\\]|\\.)*("?)|[\[\]{}]', re.DOTALL)


def value_end(text: str, place: int) -> int | None:
    """Return where the value that begins at a place ends; None if it is not finished."""
    if place >= len(text):
        return None
    if text[place] == '"':
        found = _STRING.match(text, place)
        return found.end() if found else None
    if text[place] not in "[{":
        found = _PLAIN.match(text, place)
        end = found.end() if found else place
        return end if place < end < len(text) else None
    depth = 0
    for part in _PARTS.finditer(text, place):
        if part[0] in "[{":
            depth += 1
        elif part[0] in "]}":
            depth -= 1
            if depth == 0:
                return part.end()
        elif not part[1]:
            return None  # a string without its end
    return None


def members(text: str, place: int) -> tuple[dict[str, tuple[int, int | None]], int | None]:
    """Return the members of the object at a place and where it ends, None if it has not.

    A member is where its value begins and ends.
    """
    found: dict[str, tuple[int, int | None]] = {}
    place = _after_space(text, place + 1)
    while place < len(text) and text[place] == '"':
        end = value_end(text, place)
        colon = _after_space(text, end) if end is not None else len(text)
        if end is None or text[colon : colon + 1] != ":":
            return found, None
        name = loads(text[place:end])
        start = _after_space(text, colon + 1)
        stop = value_end(text, start)
        if start < len(text):
            found[str(name)] = (start, stop)
        if stop is None:
            return found, None
        place = _after_space(text, stop)
        if text[place : place + 1] != ",":
            break
        place = _after_space(text, place + 1)
    return found, place + 1 if text[place : place + 1] == "}" else None


def loads(text: str) -> Any:
    """Return the value of finished JSON, the text itself where it is none."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text


def dumps(value: Any) -> str:
    """Return a value as JSON, with its characters as they are."""
    return json.dumps(value, ensure_ascii=False)


def _after_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place
