"""Filters, tests and functions of the template language, from the field's list, each bounded."""

import html
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import wraps
from typing import Any

from jinja2 import filters, pass_environment, tests
from jinja2.sandbox import safe_range
from jinja2.utils import Namespace

from engine.chat import marked
from engine.chat.meter import CONTAINERS, running
from engine.chat.methods import (
    MAPPING_METHODS,
    MAX_COLUMNS,
    TEXT_METHODS,
    Each,
    as_list,
    as_text,
    checked_key,
    concat,
    cut,
    indent,
    join,
    percent,
)
from engine.chat.operators import add, compare

MAX_ROUND = 15
MAX_DEPTH = 100  # of nested values written as JSON


class Refused(Exception):
    """The template called raise_exception."""


def to_json(
    value: Any,
    indent: int | None = None,
    separators: Any = None,
    ensure_ascii: bool = False,
    sort_keys: bool = False,
) -> str:
    """JSON as the field's templates expect it: other scripts stay as they are, keys in order."""
    is_marked = running().walk(value)
    _require_depth(value)
    width = min(int(indent), 64) if indent is not None else None
    text = json.dumps(
        value,
        ensure_ascii=bool(ensure_ascii),
        indent=width,
        separators=None if separators is None else (str(separators[0]), str(separators[1])),
        sort_keys=bool(sort_keys),
    )
    running().text(len(text))
    return marked.from_message(text) if is_marked else text


def _require_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError("the value is nested too deeply for JSON")
        inner = [x for x in level if isinstance(x, CONTAINERS)]
        level = [y for x in inner for y in (x.values() if isinstance(x, Mapping) else x)]


def _rounded(value: Any, precision: int = 0, method: str = "common") -> Any:
    places = max(-MAX_ROUND, min(int(precision), MAX_ROUND))
    return filters.FILTERS["round"](value, places, method)


def _reversed(values: Any) -> Any:
    if isinstance(values, str):
        return cut(values, None, None, -1)
    return as_list(values)[::-1]


def _total(values: Any, attribute: Any = None, start: Any = 0) -> Any:
    total = start
    for value in values:
        total = add(total, value if attribute is None else value[attribute])
    return total


def _columns(function: Callable[..., Any]) -> Callable[..., Any]:
    def arrange(values: Any, n: int, fill_with: Any = None) -> list[Any]:
        if not 0 < int(n) <= MAX_COLUMNS:
            raise ValueError(f"{n} columns are not possible")
        return as_list(function(as_list(values), int(n), fill_with))

    return arrange


@pass_environment
def _joined(env: Any, values: Any, separator: Any = "", attribute: Any = None) -> str:
    if attribute is not None:
        values = map(filters.make_attrgetter(env, attribute), values)
    return join(values, separator)


def _comparing(name: str) -> Callable[..., Any]:
    """Measure the elements of a list before they are compared with each other."""
    function = filters.FILTERS[name]

    @pass_environment
    @wraps(function)
    def run(env: Any, values: Any, *args: Any, **named: Any) -> Any:
        elements = values if isinstance(values, (str, Mapping)) else as_list(values)
        running().walk_elements(elements)
        before = () if name == "dictsort" else (env,)
        found = function(*before, elements, *args, **named)
        return found if isinstance(found, (str, int, float)) else _settled(found)

    return run


def _settled(found: Any) -> Any:
    return as_list(found) if hasattr(found, "__next__") else found


def _text_filter(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(value: Any, *args: Any, **named: Any) -> Any:
        return function(as_text(value), *args, **named)

    return run


def _escaped(text: str) -> str:
    running().text(6 * len(text))
    return marked.wholly(html.escape(marked.plain(text)), text)


_SHARED = (
    *("abs", "attr", "default", "first", "float", "int", "last", "length", "map"),
    *("reject", "rejectattr", "select", "selectattr"),
)
_TEXT_FILTERS = (
    *("upper", "lower", "title", "capitalize", "strip", "lstrip", "rstrip", "split"),
    *("rsplit", "splitlines", "startswith", "endswith", "replace"),
)

FILTERS: dict[str, Callable[..., Any]] = {
    **{name: filters.FILTERS[name] for name in _SHARED},
    **{name: _text_filter(TEXT_METHODS[name]) for name in _TEXT_FILTERS},
    **{name: _comparing(name) for name in ("dictsort", "groupby", "max", "min", "sort", "unique")},
    "append": lambda values, value: add(as_list(values), [value]),
    "batch": _columns(filters.do_batch),
    "count": filters.FILTERS["length"],
    "d": filters.do_default,
    "e": _text_filter(_escaped),
    "escape": _text_filter(_escaped),
    "format": lambda pattern, *values, **named: percent(as_text(pattern), named or values),
    "get": lambda mapping, key, default=None: MAPPING_METHODS["get"](mapping, key, default),
    "indent": _text_filter(indent),
    "items": lambda value: list(value.items()) if value else [],
    "join": _joined,
    "keys": lambda value: list(value) if value else [],
    "list": as_list,
    "pop": lambda values, place=-1: values.pop(place),
    "reverse": _reversed,
    "round": _rounded,
    "safe": as_text,
    "slice": _columns(filters.FILTERS["slice"]),
    "string": as_text,
    "sum": _total,
    "tojson": to_json,
    "trim": _text_filter(TEXT_METHODS["strip"]),
    "values": lambda value: list(value.values()) if value else [],
    "wordcount": _text_filter(lambda text: len(TEXT_METHODS["split"](text))),
}
# Filters that the compiler of templates puts in; no template can spell their names.
INNER_FILTERS: dict[str, Callable[..., Any]] = {
    "(compare)": compare,
    "(concat)": concat,
    "(cut)": cut,
    "(each)": Each,
    "(key)": checked_key,
    "(write)": lambda n_chars: running().output(n_chars),
}


def _test(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*values: Any) -> Any:
        running().walk_operands(*values)
        return function(*values)

    return run


_TESTS: dict[str, Any] = tests.TESTS
TESTS: dict[str, Callable[..., Any]] = {
    name: test if name in ("filter", "test") else _test(test) for name, test in _TESTS.items()
}


def raise_exception(message: Any = "") -> None:
    """End the rendering with the template's own words."""
    raise Refused(marked.plain(as_text(message)))


def raise_unless(overruled: tuple[str, ...], message: Any = "") -> str:
    """As raise_exception, unless the words are among those that this program knows better."""
    if not any(words in as_text(message) for words in overruled):
        raise_exception(message)
    return ""


def strftime_now(pattern: str) -> str:
    """The local time in a format of strftime."""
    if len(pattern) > 200 or any(pair[:1].isdigit() for pair in pattern.split("%")[1:]):
        raise ValueError("the time format is not allowed")
    return datetime.now().strftime(marked.plain(pattern))


def numbers(*limits: int) -> range:
    """range(…), at most 100,000 numbers."""
    return safe_range(*limits)


def mapping(*args: Any, **named: Any) -> dict[Any, Any]:
    """dict(…)."""
    made = dict(*args, **named)
    running().items(len(made))
    return made


GLOBALS: dict[str, Any] = {
    "dict": mapping,
    "namespace": Namespace,
    "raise_exception": raise_exception,
    "range": numbers,
    "strftime_now": strftime_now,
}
