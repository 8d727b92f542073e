"""The engine's table of samplers and every value an answer used, in plain values."""

from collections.abc import Mapping, Sequence
from typing import Any


def sampler_rows() -> Sequence[Any]:
    """Return the samplers that have parameters (key, default, min, max, step, help), in order."""
    import engine

    table = engine.SAMPLING_SETTINGS
    rows = table.values() if isinstance(table, Mapping) else table
    return [row for row in rows if row.parameters]


def used(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an answer was made with, for its record: every sampling value and its limits.

    Values that the engine would refuse are kept as they were asked for.
    """
    import engine

    asked = dict(request.get("params") or {})
    limits = ("n_predict", "grammar", "json_schema", "regex")
    record = {name: request[name] for name in limits if request.get(name) is not None}
    try:
        params = engine.SamplingParams(**asked)
    except engine.EngineError:
        return {"sampling": asked, "limits": record}
    values = {name: getattr(params, name) for name in params.__dataclass_fields__}
    values.pop("seed")  # the one that was really used stands beside
    plain = {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}
    return {"sampling": plain, "limits": record}
