"""A grammar that sleeps until a word, a pattern or a token appears in the text."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray

from engine.errors import GrammarError, InternalError, nearest
from engine.grammar.matcher import Matcher

KINDS = ("word", "pattern", "pattern_full", "token")
MAX_WAITING = 256 * 1024  # bytes in which patterns are searched while waiting
MAX_TRIGGERS = 100
MAX_VALUE = 10_000  # characters of a word or pattern
SEARCH_SECONDS = 0.05  # for all patterns after one token


@dataclass(frozen=True)
class Trigger:
    """What wakes a lazy grammar: `value` is a text, a pattern, or for "token" an id."""

    kind: str
    value: str | int

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            hint = nearest(self.kind, KINDS)
            raise GrammarError(f"There is no trigger “{self.kind}” ({', '.join(KINDS)}).{hint}")
        if isinstance(self.value, bool) or not isinstance(
            self.value, int if self.kind == "token" else str
        ):
            value = repr(self.value)[:60]
            raise GrammarError(f"The value {value} is none for a trigger “{self.kind}”.")
        if isinstance(self.value, str) and not 0 < len(self.value) <= MAX_VALUE:
            raise GrammarError(f"A trigger needs a text of 1 to {MAX_VALUE:,} characters.")

    @classmethod
    def read(cls, value: Any) -> "Trigger":
        """Return a trigger given as {"type": …, "value": …}; a text alone is a word.

        As other programs send them, `type` may be 0 … 3 (token, word, pattern, pattern_full) and
        a token's id may stand under "token". Raises GrammarError for anything else.
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls("word", value)
        if not isinstance(value, Mapping) or "type" not in value:
            raise GrammarError(f"A trigger needs “type” and “value”, but is {repr(value)[:60]}.")
        kind = value["type"]
        if isinstance(kind, int) and 0 <= kind <= 3:
            kind = ("token", "word", "pattern", "pattern_full")[kind]
        kind = str(kind).lower()
        named = value.get("token") if kind == "token" else None
        return cls(kind, value.get("value", "") if named is None else named)


class LazyMatcher:
    """A matcher behind triggers; until one is met, every token may come and nothing is followed."""

    def __init__(self, matcher: Matcher, triggers: Iterable[Trigger]) -> None:
        """Wait in front of a matcher that is at its beginning.

        Raises GrammarError without triggers or for a pattern that cannot be read.
        """
        self.matcher = matcher
        self.triggers = tuple(triggers)
        if not self.triggers:
            raise GrammarError("A lazy grammar needs at least one trigger.")
        if len(self.triggers) > MAX_TRIGGERS:
            raise GrammarError(f"A lazy grammar takes at most {MAX_TRIGGERS} triggers.")
        self._tokens = {t.value for t in self.triggers if t.kind == "token"}
        self._wanted = [_wanted(t) for t in self.triggers if t.kind != "token"]
        self.is_waiting = True
        self._waited: list[int] = []  # tokens while waiting
        self._text = bytearray()  # and what they say
        self._steps: list[tuple[bool, int]] = []  # of each token: waited before; matcher's steps

    @property
    def may_end(self) -> bool:
        """Whether a token may end generation here."""
        return self.is_waiting or self.matcher.may_end

    @property
    def must_end(self) -> bool:
        """Whether nothing but the end can follow."""
        return not self.is_waiting and self.matcher.must_end

    def mask(self) -> NDArray[np.uint32]:
        """Return which tokens may come next, as `Matcher.mask`; all while waiting."""
        if self.is_waiting:
            return np.full(self.matcher.tokens.n_words, 0xFFFFFFFF, np.uint32)
        return self.matcher.mask()

    def apply(self, logits: NDArray[np.float32]) -> None:
        """Set the logits of tokens that may not come next to -inf; none while waiting."""
        if not self.is_waiting:
            self.matcher.apply(logits)

    def accepts(self, token: int) -> bool:
        """Whether a token may come next; nothing changes."""
        return self.is_waiting or self.matcher.accepts(token)

    def accept(self, token: int) -> None:
        """Take a token; when it completes a trigger, the grammar follows from the match on.

        Raises GrammarError when the text that the trigger hands over does not fit the grammar.
        """
        if not self.is_waiting:
            self.matcher.accept(token)
            self._steps.append((False, 1))
            return
        self._waited.append(token)
        self._text += self.matcher.tokens.pieces[token]
        self._steps.append((True, 0))
        if token in self._tokens:
            self._wake([token], b"")
        elif self._wanted and token not in self.matcher.tokens.eog_ids:
            self._search()

    def _search(self) -> None:
        """Wake where a word or a pattern is found in what was written while waiting."""
        pieces, decoded = self.matcher.tokens.pieces, None
        window, end = max(0, len(self._text) - MAX_WAITING), time.monotonic() + SEARCH_SECONDS
        for wanted in self._wanted:
            if isinstance(wanted, bytes):  # it can only end in what came last
                n_last = len(pieces[self._waited[-1]])
                place = self._text.find(wanted, max(0, len(self._text) - n_last - len(wanted) + 1))
            else:
                if decoded is None:
                    decoded = self._text[window:].decode("utf-8", "surrogateescape")
                start = _start(wanted, decoded, end)
                before = decoded[: start or 0].encode("utf-8", "surrogateescape")
                place = -1 if start is None else window + len(before)
            if place >= 0:
                self._wake(*self._from(place))
                return

    def _from(self, place: int) -> tuple[list[int], bytes]:
        """Return the tokens from a place in the text on, and what of a token stands before them."""
        pieces, at, n = self.matcher.tokens.pieces, len(self._text), len(self._waited)
        while at > place:
            n -= 1
            at -= len(pieces[self._waited[n]])
        if at == place:
            return self._waited[n:], b""
        return self._waited[n + 1 :], pieces[self._waited[n]][place - at :]

    def _wake(self, ids: list[int], cut: bytes) -> None:
        """Hand the rest of a token, then whole tokens, to the grammar."""
        steps = 0
        for text, token in [(cut, None), *((None, token) for token in ids)]:
            if text == b"":
                continue
            if token is not None and self.matcher.accepts(token):
                self.matcher.accept(token)
            elif not self.matcher.accept_text(text or self.matcher.tokens.pieces[token or 0]):
                self.matcher.rollback(steps)
                raise GrammarError("The text that woke the grammar does not fit it.")
            steps += 1
        self.is_waiting = False
        self._steps[-1] = (True, steps)

    def rollback(self, n_steps: int) -> None:
        """Forget the last accepted tokens, also back to before the trigger."""
        if n_steps > len(self._steps):
            raise InternalError(f"{n_steps} tokens cannot be taken back from {len(self._steps)}.")
        for _ in range(n_steps):
            waited, steps = self._steps.pop()
            self.matcher.rollback(steps)
            if waited:
                self.is_waiting = True
                n_bytes = len(self.matcher.tokens.pieces[self._waited.pop()])
                del self._text[len(self._text) - n_bytes :]

    def clone(self) -> "LazyMatcher":
        """Return a copy that goes its own way from here."""
        made = LazyMatcher(self.matcher.clone(), self.triggers)
        made.is_waiting = self.is_waiting
        made._waited, made._steps = list(self._waited), list(self._steps)
        made._text = bytearray(self._text)
        return made


def _wanted(trigger: Trigger) -> bytes | regex.Pattern[str]:
    """Return the bytes of a word, or the pattern to search for."""
    text = str(trigger.value)
    if trigger.kind == "word":
        return text.encode("utf-8", "surrogatepass")
    if trigger.kind == "pattern_full":
        text = text if text.startswith("^") else "^" + text
        text = text if text.endswith("$") else text + "$"
    try:
        return regex.compile(text)
    except (regex.error, RecursionError) as error:
        cause = "it nests too deep" if isinstance(error, RecursionError) else error
        raise GrammarError(
            f"The trigger “{text[:60]}” is no regular expression: {cause}."
        ) from error


def _start(pattern: regex.Pattern[str], text: str, end: float) -> int | None:
    """Return where the text begins that a trigger hands over, or None without a match.

    `end` is when the search has to be over, of `time.monotonic`.
    """
    try:
        found = None
        if pattern.pattern.startswith("^") and pattern.pattern.endswith("$"):
            found = pattern.fullmatch(text, timeout=max(0.001, end - time.monotonic()))
        found = found or pattern.search(text, timeout=max(0.001, end - time.monotonic()))
    except TimeoutError as error:
        raise GrammarError(
            f"The trigger “{pattern.pattern[:60]}” takes too long to be searched: simplify it."
        ) from error
    if found is None:
        return None
    groups = [i for i in range(1, pattern.groups + 1) if found.start(i) < found.end(i)]
    return found.start(groups[0]) if groups else found.start()
