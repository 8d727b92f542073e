"""Calls with their arguments already given, for signals that bring arguments of their own."""

from collections.abc import Callable
from typing import Any


def bound(call: Callable[..., Any], *arguments: Any) -> Callable[..., None]:
    """Return a slot that calls with `arguments`, whatever the signal sends."""

    def slot(*_: Any) -> None:
        call(*arguments)

    return slot
