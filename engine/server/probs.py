"""Probabilities of a sampled token and its rivals, before or after the sampler chain."""

import math
from typing import Any

from engine.server.events import TokenProb
from engine.server.loaded import Vocab
from engine.server.slot import Slot

LOWEST_LOGPROB = -3.4028234663852886e38  # the lowest finite f32, for p = 0


def token_probs(slot: Slot, token: int, row: Any, vocab: Vocab) -> tuple[TokenProb, ...]:
    """Return the token with its `n_probs` likeliest rivals, or nothing if not asked for.

    Before the chain: softmax over the raw logits. After it: the candidates the chain left.
    """
    n_probs = slot.request.n_probs
    if n_probs <= 0:
        return ()
    pairs, own = _after(slot, token) if slot.request.post_sampling_probs else _before(row, token)
    top = tuple(_prob(vocab, rival, p) for rival, p in pairs[:n_probs])
    chosen = _prob(vocab, token, own)
    return (TokenProb(chosen.token, chosen.piece, chosen.logprob, top),)


def _prob(vocab: Vocab, token: int, p: float) -> TokenProb:
    return TokenProb(token, vocab.piece(token, special=True), math.log(p) if p else LOWEST_LOGPROB)


def _before(row: Any, token: int) -> tuple[list[tuple[int, float]], float]:
    import numpy as np  # the events of this room must load without it

    logits = np.asarray(row, np.float64)
    weights = np.exp(logits - logits.max())
    shares = weights / weights.sum()
    n_top = min(256, len(shares))
    first = np.argpartition(-shares, n_top - 1)[:n_top]
    first = first[np.argsort(-shares[first], kind="stable")]
    return [(int(i), float(shares[i])) for i in first], float(shares[token])


def _after(slot: Slot, token: int) -> tuple[list[tuple[int, float]], float]:
    candidates = slot.sampler.candidates()  # type: ignore[union-attr]
    pairs = sorted(
        (
            (int(i), float(p))
            for i, p in zip(candidates.ids, candidates.probs, strict=True)
            if p > 0
        ),
        key=lambda pair: -pair[1],
    )
    return pairs, dict(pairs).get(token, 0.0)
