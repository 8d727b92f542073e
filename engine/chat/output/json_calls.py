"""Calls written as JSON: objects with a name in them, or a name and the JSON of its arguments."""

import re
from dataclasses import dataclass
from typing import ClassVar

from engine.chat.output.json_text import dumps, loads, members, value_end
from engine.chat.output.parts import Call, Tools, skip

_NAMES = ("name", "tool_name", "function_name")
_ARGUMENTS = ("arguments", "parameters")
_IDS = ("id", "tool_call_id", "call_id")


@dataclass(frozen=True)
class JsonCalls:
    """`{"name": …, "arguments": …}` between markers, alone or in a list, also under "function"."""

    starts: tuple[str, ...]
    between: re.Pattern[str]  # markers, blanks and commas around the objects

    is_whole: bool = False  # nothing may stand before them

    def one(
        self, text: str, place: int, tools: Tools, is_partial: bool
    ) -> tuple[Call | None, int | None]:
        """Read one object; see `Reader`."""
        place = skip(self.between, text, place)
        if text[place : place + 1] != "{":
            return None, None
        found, end = members(text, place)
        if "function" in found and "name" not in found:
            inner, _ = members(text, found["function"][0])
            found = {**found, **inner}
        name = _text(text, found, _NAMES)
        if not name or (self.is_whole and tools and name not in tools):
            return None, None
        return Call(name, _arguments(text, found, end), _text(text, found, _IDS)), end


@dataclass(frozen=True)
class NamedCalls:
    """A name between markers, then JSON: `[TOOL_CALLS]name[ARGS]{…}` and its relatives."""

    starts: tuple[str, ...]
    head: re.Pattern[str]  # from the marker to the arguments; groups `name` and perhaps `id`
    tail: re.Pattern[str]  # what follows the arguments

    is_whole: ClassVar[bool] = False

    def one(
        self, text: str, place: int, tools: Tools, is_partial: bool
    ) -> tuple[Call | None, int | None]:
        """Read one name with its arguments; see `Reader`."""
        head = self.head.match(text, place)
        if head is None or not head["name"].strip():
            return None, None
        groups = head.groupdict()
        start = head.end()
        end = value_end(text, start)
        arguments = text[start:end] if text[start : start + 1] == "{" else ""
        if end is None:
            arguments = arguments if is_partial else arguments or "{}"
        call = Call(groups["name"].strip(), arguments, (groups.get("id") or "").strip())
        return call, None if end is None else skip(self.tail, text, end)


def _text(text: str, found: dict[str, tuple[int, int | None]], names: tuple[str, ...]) -> str:
    """Return the first finished member of these names as a text, or ""."""
    for name in names:
        start, end = found.get(name, (0, None))
        if end is not None:
            value = loads(text[start:end])
            return value if isinstance(value, str) else dumps(value)
    return ""


def _arguments(text: str, found: dict[str, tuple[int, int | None]], end: int | None) -> str:
    """Return the arguments as JSON; what is not finished as far as it goes."""
    for name in _ARGUMENTS:
        if name in found:
            start, stop = found[name]
            if text[start] != '"':
                return text[start:stop].rstrip() if stop is None else text[start:stop]
            return loads(text[start:stop]) if stop is not None else ""  # JSON within a text
    return "" if end is None else "{}"
