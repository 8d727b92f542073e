"""The reasoning budget: when a model has thought long enough, its closing tag is forced."""

import enum
from collections.abc import Callable, Iterable
from typing import Protocol

UNLIMITED = 2**31 - 1


class Logits(Protocol):
    """What `apply` needs of a row of logits, such as a float32 array [n_tokens]."""

    def __getitem__(self, token: int, /) -> float:
        """Return the logit of a token."""

    def __setitem__(self, tokens: int | slice, value: float, /) -> None:
        """Set the logit of a token, or of all."""


class State(enum.Enum):
    """Where the text stands: before, inside, at the end of, or after the reasoning."""

    IDLE = "idle"
    COUNTING = "counting"
    WAITING_UTF8 = "waiting for the end of a character"
    FORCING = "forcing"
    DONE = "done"


class TokenSequences:
    """Finds any of several token sequences as tokens come; the longest that ends here wins."""

    def __init__(self, sequences: Iterable[Iterable[int]]) -> None:
        self.sequences = sorted({tuple(s) for s in sequences} - {()}, key=lambda s: (-len(s), s))
        self._recent: tuple[int, ...] = ()

    def accept(self, token: int) -> tuple[int, ...] | None:
        """Take a token; return the sequence that it completes, after which all begins anew."""
        longest = len(self.sequences[0]) if self.sequences else 0
        self._recent = (*self._recent, token)[-longest:] if longest else ()
        for sequence in self.sequences:
            if self._recent[-len(sequence) :] == sequence:
                self.reset()
                return sequence
        return None

    def reset(self) -> None:
        """Forget the tokens so far."""
        self._recent = ()

    def clone(self) -> "TokenSequences":
        """Return a copy that goes its own way from here."""
        made = TokenSequences(self.sequences)
        made._recent = self._recent
        return made


class ReasoningBudget:
    """Counts the tokens between a start and an end sequence; beyond the budget it forces `forced`.

    `budget` below 0 means no limit. `forced` is what is written then: a message, if any, and the
    first end sequence. `piece(token)` gives the bytes of a token, so that no character is cut.
    """

    def __init__(
        self,
        starts: Iterable[Iterable[int]],
        ends: Iterable[Iterable[int]],
        forced: Iterable[int],
        budget: int,
        piece: Callable[[int], bytes] = lambda token: b"",
        state: State = State.IDLE,
    ) -> None:
        self.starts, self.ends = TokenSequences(starts), TokenSequences(ends)
        self.forced, self.piece = tuple(forced), piece
        self.budget = UNLIMITED if budget < 0 else budget
        self.state, self.remaining, self.force_pos = state, self.budget, 0
        self._tail = b""  # of the text, so that a character may be spread over tokens
        self.ended_with: tuple[int, ...] | None = None  # the end sequence that was seen last
        if state is State.COUNTING and self.remaining <= 0:
            self._begin_forcing()

    def allowed(self) -> int | None:
        """Return the only token that may come next, or None when any may."""
        return self.forced[self.force_pos] if self.state is State.FORCING else None

    def apply(self, logits: Logits) -> None:
        """Set all logits but that of the forced token to -inf, in place."""
        token = self.allowed()
        if token is not None:
            kept = logits[token]
            logits[:] = -float("inf")
            logits[token] = kept if kept > -float("inf") else 0.0

    def accept(self, token: int) -> None:
        """Take a generated token (or one of the prompt's last turn)."""
        if self.state in (State.IDLE, State.DONE):
            self._look_for_start(token)
        elif self.state is State.FORCING:
            self._forced_one(token)
        elif (found := self.ends.accept(token)) is not None:
            self._end(found)
        else:
            self._count(token)

    def force(self) -> bool:
        """End the reasoning now; False, and no change, when none is being counted."""
        if self.state is not State.COUNTING:
            return False
        self._begin_forcing()
        return True

    def limit(self, n_tokens: int) -> None:
        """Allow so many tokens more, also of reasoning that begins later; below 0 any number, and
        0 ends it at the next token. What is being forced already goes on.
        """
        self.budget = UNLIMITED if n_tokens < 0 else n_tokens
        if self.state in (State.COUNTING, State.WAITING_UTF8):
            self.state, self.remaining = State.COUNTING, self.budget
            if self.remaining == 0:
                self._begin_forcing()

    def clone(self) -> "ReasoningBudget":
        """Return a copy that goes its own way from here."""
        made = ReasoningBudget((), (), self.forced, self.budget, self.piece)
        made.starts, made.ends = self.starts.clone(), self.ends.clone()
        made.state, made.remaining, made._tail = self.state, self.remaining, self._tail
        made.force_pos, made.ended_with = self.force_pos, self.ended_with
        return made

    def _look_for_start(self, token: int) -> None:
        if self.starts.accept(token) is None:
            return
        self.state, self.remaining, self.ended_with = State.COUNTING, self.budget, None
        self._tail = b""
        self.ends.reset()
        if self.remaining <= 0:
            self._begin_forcing()

    def _count(self, token: int) -> None:
        self._tail = (self._tail + self.piece(token))[-4:]
        if self.state is State.COUNTING:
            self.remaining -= 1
            if self.remaining > 0:
                return
        if ends_whole(self._tail):
            self._begin_forcing()
        elif self.state is State.COUNTING:
            self.state = State.WAITING_UTF8
            self.ends.reset()

    def _forced_one(self, token: int) -> None:
        found = self.ends.accept(token)
        self.force_pos += 1
        if self.force_pos >= len(self.forced):
            self._end(found)

    def _begin_forcing(self) -> None:
        self.force_pos = 0
        self.ends.reset()
        self.state = State.FORCING if self.forced else State.DONE

    def _end(self, found: tuple[int, ...] | None) -> None:
        self.state, self.ended_with = State.DONE, found
        self.starts.reset()


def ends_whole(text: bytes) -> bool:
    """Whether a byte string ends at the end of a character; an empty one does."""
    if not text:
        return True
    for n, byte in enumerate(reversed(text[-4:]), 1):
        if byte & 0xC0 != 0x80:
            needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return n >= needed
    return False
