"""Frequencies of rotary positions: plain, by linear scaling, YaRN, and per-frequency factors."""

import math

import numpy as np
from numpy.typing import ArrayLike

from engine.compute.graph import Rotation
from engine.hparams import RopeNumbers


def make_rotation(
    rope: RopeNumbers,
    layout: str,
    n_rot: int,
    freq_base: float,
    factors: ArrayLike | None = None,
    *,
    is_scaled: bool = True,
) -> Rotation:
    """Return the rotation of one kind of layer, every scaling worked into its frequencies.

    `factors` are n_rot/2 divisors; `is_scaled` False leaves the file's scaling out, as local
    layers do.
    """
    pairs = np.arange(n_rot // 2, dtype=np.float64)
    plain = freq_base ** (-2.0 * pairs / n_rot)
    if factors is not None:
        plain = plain / np.asarray(factors, np.float64)
    shrink = 1.0 if rope.scaling == "none" or not is_scaled else 1.0 / rope.factor
    ext = _ext_factor(rope) if is_scaled else 0.0
    magnitude = rope.attn_factor if is_scaled else 1.0
    scaled = plain * shrink
    if ext:
        ramp = _yarn_ramp(rope, n_rot, freq_base, pairs) * ext
        scaled = scaled * (1.0 - ramp) + plain * ramp
        magnitude *= _yarn_magnitude(rope)
    return Rotation(layout, n_rot, tuple(scaled.tolist()), magnitude)


def _ext_factor(rope: RopeNumbers) -> float:
    if rope.ext_factor is not None and rope.ext_factor >= 0.0:
        return rope.ext_factor
    return 1.0 if rope.scaling == "yarn" else 0.0


def _yarn_ramp(rope: RopeNumbers, n_rot: int, base: float, pairs: np.ndarray) -> np.ndarray:
    """Return per pair how much of its own frequency it keeps: 1 for fast, 0 for slow pairs."""

    def pair_turning(times: float) -> float:
        """Return the pair that turns so many times over the original context."""
        return n_rot * math.log(rope.n_ctx_orig / (2 * math.pi * times)) / (2 * math.log(base))

    low = max(0.0, math.floor(pair_turning(rope.beta_fast)))
    high = min(n_rot - 1.0, math.ceil(pair_turning(rope.beta_slow)))
    return 1.0 - np.clip((pairs - low) / max(0.001, high - low), 0.0, 1.0)


def _yarn_magnitude(rope: RopeNumbers) -> float:
    """Return what YaRN multiplies cos and sin by, attention growing with the context."""
    growth = _attention_growth(rope.factor, 1.0)
    if rope.log_multiplier == 0.0:
        return growth
    return growth / _attention_growth(rope.factor, rope.log_multiplier)


def _attention_growth(factor: float, multiplier: float) -> float:
    return 1.0 if factor <= 1.0 else 0.1 * multiplier * math.log(factor) + 1.0
