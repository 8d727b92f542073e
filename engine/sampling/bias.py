"""Logit bias: what a caller, the end of texts and the model itself add to the logits of tokens."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.errors import RequestError
from engine.params import SamplingParams
from engine.sampling.texts import Vocabulary, once

MAX_TEXTS = 10_000  # each is cut into tokens
LARGEST_F32 = 3.4028234663852886e38


class Biases(NamedTuple):
    """Token ids int32 [n] and what is added to the logit of each, f32 [n]; -inf forbids."""

    ids: NDArray[np.int32]
    values: NDArray[np.float32]


def finite_f32(x: float) -> float:
    """Return x as f32 rounds it, but finite: limits are compared as the field compares them."""
    return float(np.float32(min(max(x, -LARGEST_F32), LARGEST_F32)))


def biases_of(vocab: Vocabulary, params: SamplingParams) -> Biases:
    """Return the biases for a vocabulary, worked out once for as long as they are wanted.

    First the caller's, where a text stands for all its tokens and ids beyond the vocabulary are
    ignored, then -inf for the ends that are to be ignored and what the model suppresses. Raises
    RequestError for more of them than anyone can mean.
    """
    key = "bias", params.logit_bias, params.ignore_eos
    return once(vocab, key, lambda: _biases(vocab, params))


def _biases(vocab: Vocabulary, params: SamplingParams) -> Biases:
    n_texts = sum(isinstance(token, str) for token, _ in params.logit_bias)
    if n_texts > MAX_TEXTS or len(params.logit_bias) > vocab.n_tokens + MAX_TEXTS:
        raise RequestError(
            f"“logit_bias” holds {len(params.logit_bias):,} entries, more than the model has use"
            " for: leave some out."
        )
    pairs = list(_pairs(vocab, params))
    values = [bias if math.isinf(bias) else finite_f32(bias) for _, bias in pairs]
    ids = np.array([token for token, _ in pairs], np.int32)
    return Biases(ids, np.array(values, np.float32))


def _pairs(vocab: Vocabulary, params: SamplingParams) -> Iterator[tuple[int, float]]:
    ends = vocab.eog_ids if params.ignore_eos else ()
    banned = [(int(token), -math.inf) for token in (*ends, *vocab.suppressed)]
    for token, bias in [*params.logit_bias, *banned]:
        if isinstance(token, str):
            tokens = vocab.tokenize(token, parse_special=False, add_special=False)
        else:
            tokens = [token]
        yield from ((t, bias) for t in tokens if 0 <= t < vocab.n_tokens)
