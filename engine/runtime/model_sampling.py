"""The sampling values that a model's maker recommends in the file, as far as they are sane.

They stand under “general.sampling.”. A file is not trusted: what is no number is passed by, a
number is moved into the range that its slider shows, an unknown stage is left out of the order.
"""

import math
from collections.abc import Mapping
from typing import Any

from engine.params import SAMPLER_ORDER

PREFIX = "general.sampling."
MOST_CHARACTERS = 400  # of a value that is a text
# name in the file → field of SamplingParams, whole number or not, least and most
_NUMBERS: dict[str, tuple[str, type, float, float]] = {
    "temp": ("temperature", float, 0.0, 5.0),
    "top_k": ("top_k", int, 0, 200),
    "top_p": ("top_p", float, 0.0, 1.0),
    "min_p": ("min_p", float, 0.0, 1.0),
    "xtc_probability": ("xtc_probability", float, 0.0, 1.0),
    "xtc_threshold": ("xtc_threshold", float, 0.0, 0.5),
    "penalty_last_n": ("repeat_last_n", int, 0, 4096),
    "penalty_repeat": ("repeat_penalty", float, 1.0, 1.5),
    "mirostat": ("mirostat", int, 0, 2),
    "mirostat_tau": ("mirostat_tau", float, 0.0, 10.0),
    "mirostat_eta": ("mirostat_eta", float, 0.0, 1.0),
}
_OTHER_NAMES = {
    **{"temp": "temperature", "typ": "typ_p", "typical": "typ_p", "typicalp": "typ_p"},
    **{"nucleus": "top_p", "infill": "infill", "adaptivep": "adaptive_p"},
}
_STAGES = {name.replace("_", ""): name for name in SAMPLER_ORDER} | _OTHER_NAMES


def model_sampling(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of SamplingParams that a file's metadata recommends; {} when it is silent."""
    found: dict[str, Any] = {}
    for name, (key, kind, low, high) in _NUMBERS.items():
        number = _number(metadata.get(PREFIX + name))
        if number is not None:
            if name == "penalty_last_n" and number < 0:
                number = high  # as far back as there is anything
            found[key] = kind(min(max(number, low), high))
    order = _order(metadata.get(PREFIX + "sequence"))
    return found | ({"samplers": order} if order else {})


def _number(value: Any) -> float | None:
    """Return a finite number, also one written as text, or None."""
    is_text = isinstance(value, str) and len(value) <= MOST_CHARACTERS
    if isinstance(value, bool) or not (is_text or isinstance(value, (int, float))):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _order(value: Any) -> list[str]:
    """Return the stages of a chain written “top_k;temperature”, each known one once."""
    if not isinstance(value, str) or len(value) > MOST_CHARACTERS:
        return []
    plain = (name.strip().lower().replace("_", "").replace("-", "") for name in value.split(";"))
    return list(dict.fromkeys(_STAGES[name] for name in plain if name in _STAGES))
