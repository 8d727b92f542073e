"""Calls written as tags, one for each argument: `<parameter=key>value</parameter>` and the like."""

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from engine.chat.output.json_text import dumps, loads
from engine.chat.output.parts import Call, Tools, certain, first

_CDATA = re.compile(r"\s*<!\[CDATA\[(.*?)\]\]>\s*", re.DOTALL)


@dataclass(frozen=True)
class TaggedCalls:
    """A head with the name, then arguments, each between its own tags, then an end."""

    starts: tuple[str, ...]
    head: re.Pattern[str]  # group `name`
    key: re.Pattern[str]  # group `key`, and `is_text` where the model tells the type
    value_end: tuple[str, ...]
    end: re.Pattern[str]

    is_whole: ClassVar[bool] = False

    def one(
        self, text: str, place: int, tools: Tools, is_partial: bool
    ) -> tuple[Call | None, int | None]:
        """Read one call; see `Reader`."""
        head = self.head.match(text, place)
        if head is None:
            return None, None
        name = head["name"].strip()
        types = tools.get(name, {}).get("properties", {})
        written: list[str] = []
        at = head.end()
        while found := self.key.match(text, at):
            end = first(text, self.value_end, found.end())
            key, kind = found["key"].strip(), types.get(found["key"].strip(), {})
            is_text = _is_text(kind, found.groupdict().get("is_text"))
            if end < 0:
                return Call(name, _open(written, key, text[found.end() :], self, is_text)), None
            written.append(f"{dumps(key)}: {_value(text[found.end() : end], is_text)}")
            mark = next(mark for mark in self.value_end if text.startswith(mark, end))
            at = end + len(mark)
        closed = self.end.match(text, at)
        if closed is None:
            begun = "{" + ", ".join(written)
            return Call(name, begun if written else ""), None
        return Call(name, "{" + ", ".join(written) + "}"), closed.end()


def _is_text(kind: Any, told: str | None) -> bool:
    """Whether a value is a text: as the model says, else as the schema has it."""
    if told is not None:
        return told == "true"
    types = kind.get("type") if isinstance(kind, dict) else None
    return types == "string" or (isinstance(types, list) and "string" in types)


def _value(raw: str, is_text: bool) -> str:
    """Return a finished value as JSON; without a type what reads as JSON is meant so."""
    inner = _CDATA.fullmatch(raw)
    raw = inner[1] if inner else raw.removeprefix("\n").removesuffix("\n")
    if is_text:
        return dumps(raw)
    plain = raw.strip()
    value = loads(plain)
    return dumps(raw if value is plain else value)


def _open(written: list[str], key: str, raw: str, syntax: TaggedCalls, is_text: bool) -> str:
    """Return the arguments so far with a value that has no end yet: of a text, what is certain."""
    if not is_text or "<![CDATA[".startswith(raw.lstrip()[:9]) or "CDATA" in raw[:12]:
        return "{" + ", ".join(written) if written else ""
    shown = certain(raw.removeprefix("\n"), ("\n", *syntax.value_end))
    shown = shown[:-1] if shown.endswith("\n") else shown
    begun = [*written, f"{dumps(key)}: {dumps(shown)[:-1]}"]
    return "{" + ", ".join(begun)
