"""A place in a text that is being read: one character at a time, errors with line and column."""

from engine.errors import GrammarError

MAX_TEXT = 256 * 1024  # characters


class Cursor:
    """Reads `text` from the front; `what` names it in errors ("grammar", "pattern")."""

    def __init__(self, text: str, what: str) -> None:
        if len(text) > MAX_TEXT:
            raise GrammarError(
                f"The {what} has {len(text):,} characters, more than {MAX_TEXT:,}: shorten it."
            )
        self.text, self.what, self.place = text, what, 0

    @property
    def next(self) -> str:
        """The character that comes next; empty at the end."""
        return self.text[self.place : self.place + 1]

    def take(self) -> str:
        """Return the next character and step over it; raises GrammarError at the end."""
        char = self.next
        if not char:
            raise self.error("ends in the middle of something")
        self.place += 1
        return char

    def skips(self, text: str) -> bool:
        """Whether `text` comes next; then it is stepped over."""
        found = self.text.startswith(text, self.place)
        self.place += len(text) if found else 0
        return found

    def number(self) -> int | None:
        """Return the decimal number that comes next, or None."""
        begin = self.place
        while self.next and self.next in "0123456789":
            self.place += 1
        digits = self.text[begin : self.place]
        if len(digits) > 9:
            raise self.error(f"holds a number that is too large ({digits[:12]}…)", begin)
        return int(digits) if digits else None

    def hex(self, n_digits: int) -> int:
        """Return the code point written with exactly `n_digits` hexadecimal digits."""
        digits = self.text[self.place : self.place + n_digits]
        if len(digits) < n_digits or any(c not in "0123456789abcdefABCDEF" for c in digits):
            raise self.error(f"needs {n_digits} hexadecimal digits after the escape")
        value = int(digits, 16)
        if value > 0x10FFFF:
            raise self.error(f"names the code point {digits}, which does not exist")
        self.place += n_digits
        return value

    def error(self, problem: str, place: int | None = None) -> GrammarError:
        """Return the error that says what is wrong at a place (default: here)."""
        place = min(self.place if place is None else place, len(self.text))
        before = self.text[:place].replace("\r\n", "\n").replace("\r", "\n")
        line = before.count("\n") + 1
        column = len(before) - (before.rfind("\n") + 1) + 1
        return GrammarError(f"The {self.what} {problem} (line {line}, column {column}).")
