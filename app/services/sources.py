"""Where a sampling value of a chat comes from: noted when it is taken over, told in words.

A source is [level, name]: the level "everywhere", "model" or "chat", and the name of the preset
that brought the value, "" for one that the person set by hand. No source means the engine's own.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from app.strings import tr

BY_HAND = ["chat", ""]


def by_hand(keys: Iterable[str]) -> dict[str, list[str]]:
    """Return the sources of values that the person has set in a chat."""
    return {key: list(BY_HAND) for key in keys}


def from_preset(level: str, name: str, keys: Iterable[str]) -> dict[str, list[str]]:
    """Return the sources of values that a preset brought."""
    return {key: [level, name] for key in keys}


def source_of(sources: Any, key: str, is_set: bool) -> list[str] | None:
    """Return the source of a value, None for the engine's own.

    What an older version stored without one was set in its chat.
    """
    found = sources.get(key) if isinstance(sources, Mapping) else None
    if isinstance(found, list) and [type(part) for part in found] == [str, str]:
        return found
    return list(BY_HAND) if is_set and not isinstance(sources, Mapping) else None


def in_a_word(source: list[str] | None) -> str:
    """Return a source as it stands beside a slider."""
    if source is None:
        return tr("default")
    return tr(source[1]) if source[1] else tr("this chat")


def in_words(source: list[str] | None) -> str:
    """Return a source with its level."""
    if source is None:
        return tr("default of the engine")
    level, name = source
    if not name:
        return tr("this chat")
    levels = {"everywhere": "{name}, everywhere", "model": "{name}, with this model"}
    return tr(levels.get(level, "{name}, in this chat"), name=tr(name))
