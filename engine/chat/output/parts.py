"""The parts of what a model said, and how markers that may still come are held back."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Tools = Mapping[str, Mapping[str, Any]]  # name of a tool → JSON Schema of its parameters


@dataclass(frozen=True)
class Call:
    """One call of a tool: `arguments` is JSON, or its beginning while the answer still grows."""

    name: str
    arguments: str
    id: str = ""


@dataclass(frozen=True)
class Output:
    """What a model said so far; each text only ever grows while the answer does."""

    reasoning: str = ""
    content: str = ""
    calls: tuple[Call, ...] = ()


class Reader(Protocol):
    """Reads the calls of one family of syntaxes."""

    @property
    def starts(self) -> tuple[str, ...]:
        """Return the markers that end the content and begin the calls."""

    @property
    def is_whole(self) -> bool:
        """Return whether calls are all of an answer, so that nothing may stand before them."""

    def one(
        self, text: str, place: int, tools: Tools, is_partial: bool
    ) -> tuple[Call | None, int | None]:
        """Return the call at a place and where the next may begin; None, None without one.

        A call that has no end yet comes with None for the place.
        """


def first(text: str, marks: Iterable[str], start: int = 0) -> int:
    """Return where the first of several texts begins, or -1."""
    places = [place for mark in marks if (place := text.find(mark, start)) >= 0]
    return min(places, default=-1)


def certain(text: str, marks: Iterable[str]) -> str:
    """Return a text without an end that may still become one of the marks."""
    for mark in marks:
        for n in range(min(len(mark) - 1, len(text)), 0, -1):
            if text.endswith(mark[:n]):
                text = text[:-n]
                break
    return text


def read_calls(
    text: str, reader: Reader, tools: Tools, is_partial: bool
) -> tuple[str, tuple[Call, ...]]:
    """Return content and calls; what is no call after all is content again, once all is there."""
    at = first(text, reader.starts)
    if at > 0 and reader.is_whole and text[:at].strip():
        return text, ()
    if at < 0:
        return (certain(text, reader.starts).rstrip() if is_partial else text), ()
    calls: list[Call] = []
    place: int | None = at
    while place is not None and place < len(text):
        call, place = reader.one(text, place, tools, is_partial)
        if call is not None:
            calls.append(call)
    if not calls and not is_partial:
        return text, ()
    return text[:at].rstrip(), tuple(calls)


def skip(pattern: re.Pattern[str], text: str, place: int) -> int:
    """Return where a pattern that may match nothing ends."""
    found = pattern.match(text, place)
    return found.end() if found else place
