"""Operators of the template language, each measured before it makes something large."""

import operator
from collections.abc import Callable
from typing import Any

from engine.chat import marked
from engine.chat.meter import running
from engine.chat.methods import percent

MAX_BITS = 4096  # of a whole number


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
