"""One line on stderr that shows progress while something slow happens, and vanishes."""

import re
import sys
import time

WIDTH = 24
EVERY_S = 0.1
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class ProgressLine:
    """Called with (stage, 0..1) from any thread; silent when stderr is no terminal."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()
        self._drawn_at = 0.0
        self._has_line = False

    def __call__(self, stage: str, done: float) -> None:
        now = time.monotonic()
        if not self._is_shown or (now - self._drawn_at < EVERY_S and done < 1):
            return
        self._drawn_at, self._has_line = now, True
        n_full = int(WIDTH * min(max(done, 0.0), 1.0))
        bar = "█" * n_full + "░" * (WIDTH - n_full)
        print(f"\r\x1b[K{stage} {bar} {done:4.0%}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the line away."""
        if self._has_line:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._has_line = False


def printable(text: str) -> str:
    """Return a text without what would steer a terminal: escapes, carriage returns, bells."""
    return STEERING.sub("\ufffd", text)
