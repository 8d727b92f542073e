"""Meter: how much a template may still do, in steps, characters and processor time.

A template comes from a file that a stranger made. Every operation that could repeat, grow or copy
reports here, so a hostile template ends in a fraction of a second with a sentence, and without a
thread that has to be stopped from outside.
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CLOCK_STEPS = 32  # steps between two looks at the clock
CONTAINERS = (list, tuple, dict)


@dataclass(frozen=True)
class Limits:
    """What one rendering may take; each grows with the size of the conversation."""

    seconds: float = 0.5
    n_chars: int = 32 << 20  # of all texts made on the way
    n_output: int = 8 << 20  # of the result
    n_text: int = 4 << 20  # of any one text
    n_items: int = 200_000  # of any one list

    def for_input(self, n_chars: int) -> "Limits":
        """Return limits for a conversation of so many characters."""
        return Limits(
            self.seconds + 2e-7 * n_chars,
            self.n_chars + 64 * n_chars,
            self.n_output + 4 * n_chars,
            self.n_text + 4 * n_chars,
            self.n_items + n_chars,
        )


class Exhausted(Exception):
    """A template reached a limit; the text says which, to follow “it”."""


class Meter:
    """Counts what one rendering takes; raises Exhausted when that is too much."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._n_steps = 0
        self._n_chars = 0
        self._n_output = 0
        self._deadline = time.thread_time() + limits.seconds

    def step(self, n: int = 1) -> None:
        """Count n small steps."""
        before = self._n_steps
        self._n_steps += n
        if before // CLOCK_STEPS != self._n_steps // CLOCK_STEPS:
            self.look_at_clock()

    def look_at_clock(self) -> None:
        """Check the time that this thread has computed since the start."""
        if time.thread_time() > self._deadline:
            raise Exhausted("takes too long")

    def text(self, n_chars: int) -> None:
        """Count a text about to be made."""
        if n_chars > self._limits.n_text:
            raise Exhausted("makes a text that is too long")
        self._n_chars += n_chars
        if self._n_chars > self._limits.n_chars:
            raise Exhausted("uses too much memory")
        self.step(1 + n_chars // 4096)

    def items(self, n_items: int) -> None:
        """Count a list about to be made."""
        if n_items > self._limits.n_items:
            raise Exhausted("makes a list that is too long")
        self.text(8 * n_items)

    def output(self, n_chars: int) -> None:
        """Count text about to be written."""
        self._n_output += n_chars
        if self._n_output > self._limits.n_output:
            raise Exhausted("writes too much text")
        self.step(1 + n_chars // 4096)

    def walk(self, value: Any) -> bool:
        """Count everything inside a value, as often as it is in there; tell if any is a Marked.

        What looks into nested values has no limit of its own: a list of twice itself, thirty times
        over, is small in memory and endless to print or compare.
        """
        waiting, is_marked = [value], False
        while waiting:
            inner = waiting.pop()
            if isinstance(inner, CONTAINERS):
                self.step(1 + len(inner))
                waiting += inner
                if isinstance(inner, Mapping):
                    waiting += inner.values()
            elif isinstance(inner, str):
                self.text(len(inner))
                is_marked = is_marked or hasattr(inner, "origin")
        return is_marked

    def walk_operands(self, *values: Any) -> None:
        """Count what a comparison looks at: texts, and the inside of containers where two meet."""
        for value in values:
            if isinstance(value, (str, list, tuple)):
                self.step(1 + len(value) // 1024)
        if sum(isinstance(value, CONTAINERS) for value in values) > 1:
            for value in values:
                self.walk(value)

    def walk_elements(self, values: Any) -> None:
        """Count what comparing the elements of a list with each other looks at."""
        if isinstance(values, CONTAINERS):
            inner = [*values, *values.values()] if isinstance(values, Mapping) else values
            if any(isinstance(value, CONTAINERS) for value in inner):
                self.walk(values)


_LOCAL = threading.local()


def running() -> Meter:
    """Return the meter of the rendering in this thread; outside of one, a fresh one."""
    meter = getattr(_LOCAL, "meter", None)
    return meter if meter is not None else Meter(Limits())


class Metered:
    """Makes a meter the one of this thread for the length of a `with`."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def __enter__(self) -> Meter:
        self._before = getattr(_LOCAL, "meter", None)
        _LOCAL.meter = self._meter
        return self._meter

    def __exit__(self, *error: object) -> None:
        _LOCAL.meter = self._before
