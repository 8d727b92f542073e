"""Decision: how likely each of some options is to follow a prompt, from one batch."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import exp, inf, log
from typing import Any

from engine.errors import RequestError
from engine.server.events import Timings

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Decision:
    """The options with their probabilities (together 1) and their log-likelihoods.

    An option that begins another one has only the likelihood of not going on as that one: “1”
    beside “10” is a 1 that is not followed by 0.
    """

    options: tuple[str, ...]
    probabilities: tuple[float, ...]
    logprobs: tuple[float, ...]
    timings: Timings = field(default_factory=Timings)

    @property
    def best(self) -> str:
        """Return the likeliest option."""
        return max(zip(self.probabilities, self.options, strict=True), key=lambda each: each[0])[1]

    @property
    def score(self) -> float:
        """Return the mean of options that are numbers; raises RequestError for other options."""
        try:
            values = [float(option) for option in self.options]
        except ValueError as error:
            raise RequestError("Only a decision between numbers has a score.") from error
        return sum(p * value for p, value in zip(self.probabilities, values, strict=True))


@dataclass(frozen=True)
class Options:
    """The options of a decision as texts and as token ids, each of at least one token."""

    texts: tuple[str, ...]
    tokens: tuple[Tokens, ...]

    @classmethod
    def read(cls, texts: Iterable[Any], tokenize: Callable[[str], Sequence[int]]) -> "Options":
        """Return options given as texts or numbers; raises RequestError for what none can be."""
        read = tuple(str(text) for text in texts)
        ids = tuple(tuple(tokenize(text)) for text in read)
        if len(read) < 2 or not all(ids) or len(set(ids)) < len(ids):
            raise RequestError("A decision needs at least two options, none empty, none twice.")
        return cls(read, ids)

    @property
    def branches(self) -> list[Tokens]:
        """Return the tokens to decode behind the prompt: what precedes the last of each option.

        What begins another branch is part of it.
        """
        begun = sorted({tokens[:-1] for tokens in self.tokens if len(tokens) > 1})
        following = [*begun[1:], ()]
        return [b for b, after in zip(begun, following, strict=False) if after[: len(b)] != b]

    def decide(self, logprob: Callable[[Tokens, int], float], timings: Timings) -> Decision:
        """Return the decision; `logprob(before, token)` is ln p of a token behind some tokens."""
        cache: dict[tuple[Tokens, int], float] = {}
        totals = []
        for tokens in self.tokens:
            total = 0.0
            for i, token in enumerate(tokens):
                key = tokens[:i], token
                if key not in cache:
                    cache[key] = logprob(*key)
                total += cache[key]
            totals.append(total)
        own = [self._alone(i, totals) for i in range(len(totals))]
        highest = max(own)
        weights = [exp(value - highest) if highest > -inf else 1.0 for value in own]
        whole = sum(weights)
        return Decision(self.texts, tuple(w / whole for w in weights), tuple(own), timings)

    def _alone(self, i: int, totals: Sequence[float]) -> float:
        """Return the log-likelihood of an option without that of those that it begins."""
        mine = self.tokens[i]
        if totals[i] == -inf:
            return -inf
        longer = [j for j, t in enumerate(self.tokens) if len(t) > len(mine) and _begins(mine, t)]
        nearest = [
            j
            for j in longer
            if not any(k != j and _begins(self.tokens[k], self.tokens[j]) for k in longer)
        ]
        left = 1.0 - sum(exp(totals[j] - totals[i]) for j in nearest)
        return totals[i] + log(left) if left > 0 else -inf


def _begins(tokens: Tokens, other: Tokens) -> bool:
    return other[: len(tokens)] == tokens
