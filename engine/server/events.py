"""The events a request sends to its listener, and nothing else: plain frozen values.

The order is `PromptProgress* TextDelta* (Finished | Failed)`: exactly one last event per answer.
The texts of all `TextDelta` of an answer, joined, are `Finished.text`.
"""

from dataclasses import dataclass, field
from typing import Any

from engine import errors
from engine.errors import EngineError


@dataclass(frozen=True)
class TokenProb:
    """One token with its probability: its id, its bytes, ln(p), and the likeliest rivals.

    `is_end`: the answer ends with it, and its bytes are no text. With `CompletionRequest.trace`,
    `is_forbidden` says that a grammar does not allow it there, and `stages` is what each sampler
    (and a grammar) made of them, "logits" first: `name`, `n_left` and `probs` (token id →
    probability, 0.0 where the token is cut).
    """

    token: int
    piece: bytes
    logprob: float
    top: tuple["TokenProb", ...] = ()
    stages: tuple[Any, ...] = ()
    is_end: bool = False
    is_forbidden: bool = False


@dataclass(frozen=True)
class PromptProgress:
    """How much of the prompt is known: tokens in all, found in memory, read so far by the model.

    `is_reasoning`: the prompt ends inside a thought, so that the answer begins with its rest.
    """

    n_prompt: int
    n_cached: int
    n_read: int
    elapsed_ms: float
    index: int = 0
    is_reasoning: bool = False

    @property
    def done(self) -> float:
        """Return the known share of the prompt, 0 to 1."""
        return (self.n_cached + self.n_read) / self.n_prompt if self.n_prompt else 1.0

    @property
    def left_ms(self) -> float | None:
        """Return the milliseconds still to read at the speed so far, or None before any."""
        if not self.n_read:
            return None
        n_left = self.n_prompt - self.n_cached - self.n_read
        return self.elapsed_ms / self.n_read * n_left


@dataclass(frozen=True)
class TextDelta:
    """Text that is certain now; the ids (and probabilities) of the tokens sampled since the last.

    `text` may be empty while a character or a possible stop word is unfinished.
    """

    text: str
    tokens: tuple[int, ...] = ()
    probs: tuple[TokenProb, ...] = ()
    index: int = 0


@dataclass(frozen=True)
class Timings:
    """Counts of tokens and milliseconds of one answer; `n_prompt = n_cached + n_read`."""

    n_prompt: int = 0
    n_cached: int = 0
    n_read: int = 0
    read_ms: float = 0.0
    first_token_ms: float = 0.0  # from submit to the first sampled token
    n_generated: int = 0
    generate_ms: float = 0.0
    n_drafted: int = 0
    n_accepted: int = 0

    @property
    def read_tps(self) -> float:
        """Return prompt tokens read per second, 0 when none were."""
        return self.n_read / self.read_ms * 1000 if self.read_ms else 0.0

    @property
    def generate_tps(self) -> float:
        """Return tokens generated per second; the first one comes with the prompt."""
        n_steps = self.n_generated - 1
        return n_steps / self.generate_ms * 1000 if n_steps > 0 and self.generate_ms else 0.0


@dataclass(frozen=True)
class Finished:
    """The whole answer and why it ended: `stop_type` is eos, word, limit or cancelled.

    `tokens` are all sampled ids, the ending one included; `truncated`: the context was full;
    `changes` are pairs (token, names and values) of what changed on the way, and where it acted
    first.
    """

    text: str
    stop_type: str
    timings: Timings = field(default_factory=Timings)
    truncated: bool = False
    tokens: tuple[int, ...] = ()
    probs: tuple[TokenProb, ...] = ()
    stop_word: str = ""
    id_slot: int = -1
    seed: int = 0
    index: int = 0
    changes: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Failed:
    """The answer ended by an error: its stable kind and one sentence with cause and remedy."""

    kind: str
    message: str
    index: int = 0

    @property
    def error(self) -> EngineError:
        """Return it as an error of its class."""
        for cls in vars(errors).values():
            is_error = isinstance(cls, type) and issubclass(cls, EngineError)
            if is_error and cls.kind == self.kind:
                return cls(self.message)
        return EngineError(self.message)


Event = PromptProgress | TextDelta | Finished | Failed
