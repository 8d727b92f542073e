"""The engine's table of samplers, as the sampling panel shows it."""

from collections.abc import Mapping, Sequence
from typing import Any


def sampler_rows() -> Sequence[Any]:
    """Return the samplers that have parameters (key, default, min, max, step, help), in order."""
    import engine

    table = engine.SAMPLING_SETTINGS
    rows = table.values() if isinstance(table, Mapping) else table
    return [row for row in rows if row.parameters]
