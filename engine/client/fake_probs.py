"""Made-up probabilities and seeds of a FakeClient, shaped as the engine's."""

import math
from typing import NamedTuple

from engine.params import RANDOM_SEED, CompletionRequest
from engine.server.events import TokenProb


class FakeStage(NamedTuple):
    """A stage of a made-up chain."""

    name: str
    n_left: int
    probs: dict[int, float]


def fake_seed(wanted: int, id_task: int) -> int:
    """Return the seed that is wanted, or another one for each request."""
    return wanted if wanted != RANDOM_SEED else 1000 + id_task


def fake_probs(request: CompletionRequest, piece: str) -> tuple[TokenProb, ...]:
    """Return a token of p = 1/2 with rivals each half as likely as the one before.

    With a trace a “top-k” keeps the first two; the ids of the rivals count up from the token's.
    """
    n = request.n_probs
    if n <= 0:
        return ()
    token = len(piece)
    pieces = [piece, *(f" other{i}" for i in range(1, n))]
    before = [0.5 ** (i + 1) for i in range(n)]
    named = zip(pieces, before, strict=True)
    top = tuple(
        TokenProb(token + i, text.encode(), math.log(p)) for i, (text, p) in enumerate(named)
    )
    stages: tuple[FakeStage, ...] = ()
    if request.trace:
        after = [p / sum(before[:2]) if i < 2 else 0.0 for i, p in enumerate(before)]
        rows = ("logits", 1000, before), ("top-k", 2, after), ("dist", 2, after)
        stages = tuple(
            FakeStage(name, n_left, {token + i: p for i, p in enumerate(probs)})
            for name, n_left, probs in rows
        )
    return (TokenProb(token, piece.encode(), math.log(0.5), top, stages),)
