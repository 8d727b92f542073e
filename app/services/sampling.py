"""The engine's table of samplers, as the sampling panel shows it."""

from collections.abc import Sequence
from typing import Any


def sampler_rows() -> Sequence[Any]:
    """Return the samplers with their parameters: key, default, min, max, step, help."""
    import engine

    return getattr(engine, "SAMPLING_SETTINGS", ())
