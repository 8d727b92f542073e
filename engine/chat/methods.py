"""Methods that a template may call on texts, lists and mappings; what is not here does not exist.

Texts keep the origin of their characters (`marked`), and whatever can grow is measured first
(`meter`).
"""

from collections.abc import Callable, Iterable
from typing import Any

from jinja2 import Undefined

from engine.chat import marked
from engine.chat.meter import CONTAINERS, running

MAX_COLUMNS = 10_000


def as_text(value: Any) -> str:
    """Return what `{{ value }}` writes."""
    if isinstance(value, str):
        return value
    if isinstance(value, CONTAINERS):
        is_marked = running().walk(value)
        text = str(value)
        running().text(len(text))
        return marked.from_message(text) if is_marked else text
    return str(value)


# ---------------------------------------------------------------- texts
def join(values: Iterable[Any], separator: Any = "") -> str:
    """Join what the values write."""
    texts = [as_text(value) for value in values]
    between = as_text(separator)
    running().text(sum(map(len, texts)) + len(between) * len(texts))
    return marked.join(between, texts)


def replace(text: str, old: str, new: str, count: int | None = None) -> str:
    """Replace the first `count` places, or all."""
    old, new, limit = as_text(old), as_text(new), -1 if count is None else count
    n = text.count(old) if limit < 0 else min(limit, text.count(old))
    running().text(len(text) + n * max(0, len(new) - len(old)))
    return marked.replace(text, old, new, limit)


def indent(text: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    """Indent lines by a number of spaces or by a text."""
    margin = len(width) if isinstance(width, str) else int(width)
    running().text(len(text) + (1 + text.count("\n")) * max(0, margin))
    return marked.indent(text, width, first, blank)


def percent(pattern: str, values: Any) -> str:
    """pattern % values."""
    texts = values if isinstance(values, tuple) else (values,)
    return _formatted(pattern, texts, lambda: marked.format_percent(pattern, values))


def braces(pattern: str, *values: Any, **named: Any) -> str:
    """pattern.format(…)."""
    given = (*values, *named.values())
    return _formatted(pattern, given, lambda: marked.format_braces(pattern, values, named))


def _formatted(pattern: str, values: Iterable[Any], make: Callable[[], str]) -> str:
    if len(pattern) > MAX_COLUMNS:
        raise ValueError("the format is too long")
    running().text(len(pattern) + sum(len(as_text(value)) for value in values) * pattern.count("%"))
    text = make()
    running().text(len(text))
    return text


def concat(*values: Any) -> str:
    """a ~ b ~ …"""
    return join(values)


def cut(value: Any, start: Any, stop: Any, step: Any) -> Any:
    """value[start:stop:step] of a text or list; undefined stays undefined."""
    if isinstance(value, Undefined):
        return value
    if not isinstance(value, (str, list, tuple)):
        raise TypeError(f"a {type(value).__name__} cannot be sliced")
    part = value[slice(*(None if isinstance(x, Undefined) else x for x in (start, stop, step)))]
    running().text(len(part)) if isinstance(part, str) else running().items(len(part))
    return part


def _changing(name: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        running().text(len(text))
        return marked.like(text, getattr(marked.plain(text), name)())

    return change


def _cutting(function: Callable[..., Any]) -> Callable[..., Any]:
    def cut_up(text: str, *args: Any, **named: Any) -> Any:
        running().text(len(text))
        found = function(text, *args, **named)
        if not isinstance(found, str):
            running().items(len(found))
        return found

    return cut_up


def _asking(name: str) -> Callable[..., Any]:
    def ask(text: str, *args: Any) -> Any:
        running().step(1 + len(text) // 4096)
        return getattr(marked.plain(text), name)(*args)

    return ask


_CASES = ("upper", "lower", "title", "capitalize", "swapcase", "casefold")
_CUTS: dict[str, Callable[..., Any]] = {
    "strip": marked.strip,
    "lstrip": marked.lstrip,
    "rstrip": marked.rstrip,
    "split": marked.split,
    "rsplit": marked.rsplit,
    "splitlines": marked.splitlines,
    "partition": marked.partition,
    "rpartition": marked.rpartition,
}
_QUESTIONS = (
    *("startswith", "endswith", "find", "rfind", "index", "rindex", "count"),
    *("isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower"),
    *("isnumeric", "isspace", "istitle", "isupper"),
)


def _without_prefix(text: str, prefix: str) -> str:
    return text[len(prefix) :] if text.startswith(prefix) else text


def _without_suffix(text: str, suffix: str) -> str:
    return text[: len(text) - len(suffix)] if suffix and text.endswith(suffix) else text


TEXT_METHODS: dict[str, Callable[..., Any]] = {
    **{name: _changing(name) for name in _CASES},
    **{name: _cutting(function) for name, function in _CUTS.items()},
    **{name: _asking(name) for name in _QUESTIONS},
    "format": braces,
    "join": lambda text, values: join(values, text),
    "removeprefix": _without_prefix,
    "removesuffix": _without_suffix,
    "replace": replace,
}


# ---------------------------------------------------------------- lists and mappings
def _append(values: list[Any], value: Any) -> None:
    running().items(len(values) + 1)
    values.append(value)


def _insert(values: list[Any], place: int, value: Any) -> None:
    running().items(len(values) + 1)
    values.insert(place, value)


def _extend(values: list[Any], more: Iterable[Any]) -> None:
    added = as_list(more)
    running().items(len(values) + len(added))
    values.extend(added)


def _find(values: Any, value: Any) -> int:
    running().walk_operands(values, value)
    return values.index(value)


def _count(values: Any, value: Any) -> int:
    running().walk_operands(values, value)
    return values.count(value)


def _update(mapping: dict[Any, Any], *more: Any, **named: Any) -> None:
    mapping.update(*more, **named)
    running().items(len(mapping))


LIST_METHODS: dict[str, Callable[..., Any]] = {
    "append": _append,
    "copy": lambda values: as_list(values),
    "count": _count,
    "extend": _extend,
    "index": _find,
    "insert": _insert,
    "pop": lambda values, place=-1: values.pop(place),
    "reverse": lambda values: values.reverse(),
}
MAPPING_METHODS: dict[str, Callable[..., Any]] = {
    "copy": lambda mapping: dict(mapping),
    "get": lambda mapping, key, default=None: mapping.get(checked_key(key), default),
    "items": lambda mapping: list(mapping.items()),
    "keys": lambda mapping: list(mapping),
    "pop": lambda mapping, key, *default: mapping.pop(checked_key(key), *default),
    "setdefault": lambda mapping, key, value=None: mapping.setdefault(checked_key(key), value),
    "update": _update,
    "values": lambda mapping: list(mapping.values()),
}


def checked_key(key: Any) -> Any:
    """Return a key whose hash is not endless to compute."""
    if isinstance(key, tuple):
        running().walk(key)
    return key


def as_list(values: Any) -> list[Any]:
    """Return the elements of anything that has some."""
    found = []
    for value in values:
        running().step()
        found.append(value)
    running().items(len(found))
    return found


class Each:
    """The elements of a loop, each of them a step."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def __iter__(self) -> Any:
        for value in self._values:
            running().step()
            yield value

    def __len__(self) -> int:
        return len(self._values)
