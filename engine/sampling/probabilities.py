"""Probabilities of a token and its rivals: of the raw row, or of what the chain left."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.native.buffers import address, aligned
from engine.sampling import words as w
from engine.sampling.chain import SamplerChain
from engine.sampling.run import Run, step

LOWEST_LOGPROB = -3.4028234663852886e38  # for p = 0: the lowest finite f32


class Ranking(NamedTuple):
    """The likeliest tokens, ids int32 [n], with ln p f32 [n], and ln p of one token."""

    ids: NDArray[np.int32]
    logprobs: NDArray[np.float32]
    logprob: float


class RowRanker:
    """Ranks rows of logits over a vocabulary before any sampler; one thread at a time."""

    def __init__(self, n_vocab: int) -> None:
        self._run = Run(n_vocab)
        self._numbers = aligned(w.STATE_WORDS, np.float64)

    def rank(self, logits: NDArray, token: int, n: int) -> Ranking:
        """Return the n likeliest tokens of a row f32 [n_vocab] and where `token` stands.

        Raises InternalError for NaN or infinite logits, RequestError if every one is -inf.
        """
        n = min(n, self._run.n_vocab)
        top = [step("top_k", n)] if n > 0 else []
        log_sum = step("log_sum", 0, 0, 0, 0, address(self._numbers))
        self._run.use([log_sum, *top, step("greedy")])
        self._run.do(logits)
        total = float(self._numbers[w.LOG_SUM_EXP])
        found = self._run.candidates()
        ids, scores = found.ids[:n], found.logits[:n].astype(np.float64) - total
        own = max(float(np.ravel(logits)[token]) - total, LOWEST_LOGPROB)
        return Ranking(ids, np.maximum(scores, LOWEST_LOGPROB).astype(np.float32), own)


def rank_after(chain: SamplerChain, token: int, n: int) -> Ranking:
    """Return the n likeliest candidates that a chain left, without those of p = 0."""
    left = chain.candidates()
    order = _largest(left.probs, n)
    order = order[left.probs[order] > 0]
    own = left.probs[left.ids == token].sum()
    with np.errstate(divide="ignore"):
        logprobs = np.log(left.probs[order])
        logprob = max(float(np.log(own)), LOWEST_LOGPROB)
    return Ranking(left.ids[order], logprobs.astype(np.float32), logprob)


def _largest(values: NDArray[np.float32], n: int) -> NDArray[np.int64]:
    """Return the places of the n largest, the largest first, equal ones in their order."""
    if 0 < n < len(values) // 4:
        least = np.partition(values, len(values) - n)[len(values) - n]
        places = np.flatnonzero(values >= least)
    else:
        places = np.arange(len(values))
    return places[np.argsort(-values[places], kind="stable")][:n]
