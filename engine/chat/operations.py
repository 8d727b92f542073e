"""What a template may do with values: methods, filters, tests and functions, each of them bounded.

Nothing else of Python is in reach: a method is one of these tables or it does not exist. Texts keep
the origin of their characters (`marked`), and whatever can grow is measured first (`meter`).
"""

import html
import json
import operator
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import wraps
from typing import Any

from jinja2 import Undefined, filters, pass_environment, tests
from jinja2.sandbox import safe_range
from jinja2.utils import Namespace, _PassArg

from engine.chat import marked
from engine.chat.meter import CONTAINERS, running

MAX_BITS = 4096  # of a whole number
MAX_ROUND = 15
MAX_COLUMNS = 10_000
MAX_DEPTH = 100  # of nested values written as JSON


class Refused(Exception):
    """The template called raise_exception."""


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


# ---------------------------------------------------------------- operators
def add(left: Any, right: Any) -> Any:
    """left + right."""
    if isinstance(left, str) and isinstance(right, str):
        running().text(len(left) + len(right))
        return marked.concat((left, right))
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        running().items(len(left) + len(right))
    return left + right


def multiply(left: Any, right: Any) -> Any:
    """left * right."""
    for value, n in ((left, right), (right, left)):
        if isinstance(value, str) and isinstance(n, int):
            running().text(len(value) * max(n, 0))
            return marked.repeat(value, n)
        if isinstance(value, (list, tuple)) and isinstance(n, int):
            running().items(len(value) * max(n, 0))
    _require_bits(_bits(left) + _bits(right))
    return left * right


def remainder(left: Any, right: Any) -> Any:
    """left % right: of numbers, or a format and its values."""
    return percent(left, right) if isinstance(left, str) else left % right


def power(left: Any, right: Any) -> Any:
    """left ** right."""
    if isinstance(left, int) and isinstance(right, int):
        _require_bits(_bits(left) * max(right, 1) if right < 2**20 else MAX_BITS + 1)
    return left**right


def _bits(value: Any) -> int:
    return value.bit_length() if isinstance(value, int) else 0


def _require_bits(n_bits: int) -> None:
    if n_bits > MAX_BITS:
        raise OverflowError("the number is too large")


BINARY_OPERATORS = {"+": add, "*": multiply, "%": remainder, "**": power}

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gteq": operator.ge,
    "lt": operator.lt,
    "lteq": operator.le,
    "in": lambda left, right: left in right,
    "notin": lambda left, right: left not in right,
}


def compare(left: Any, *rest: Any) -> Any:
    """left OP right OP …: `rest` holds names of operators and operands by turns."""
    result: Any = True
    for name, right in zip(rest[::2], rest[1::2], strict=True):
        running().walk_operands(left, right)
        result = _COMPARISONS[name](left, right)
        if not result:
            break
        left = right
    return result


# ---------------------------------------------------------------- filters
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
    return filters.do_round(value, max(-MAX_ROUND, min(int(precision), MAX_ROUND)), method)  # type: ignore[arg-type]


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


def _comparing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Measure the elements of a list before they are compared with each other."""

    @pass_environment
    @wraps(function)
    def run(env: Any, values: Any, *args: Any, **named: Any) -> Any:
        elements = values if isinstance(values, (str, Mapping)) else as_list(values)
        running().walk_elements(elements)
        passes = _PassArg.from_obj(function) is not None
        found = function(*([env] if passes else []), elements, *args, **named)
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
    **{
        name: _comparing(filters.FILTERS[name])
        for name in ("dictsort", "groupby", "max", "min", "sort", "unique")
    },
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


# ---------------------------------------------------------------- functions
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
