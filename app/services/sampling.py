"""The engine's table of samplers and every value an answer used, in plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

# Options that make no text, or that are told in another way.
NOT_TOLD = frozenset(
    {"prompt", "params", "changes", "seed", "on_event", "return_progress"}
    | {"n", "n_probs", "post_sampling_probs", "trace", "id_slot"}
    | {"n_seq_max", "cache_ram", "embeddings"}
)


def sampler_rows() -> Sequence[Any]:
    """Return the samplers that have parameters (key, default, min, max, step, help), in order."""
    import engine

    table = engine.SAMPLING_SETTINGS
    rows = table.values() if isinstance(table, Mapping) else table
    return [row for row in rows if row.parameters]


def used(request: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an answer was made with, for its record.

    "sampling", "limits" and "context" hold every value of SamplingParams, CompletionRequest and
    ContextParams, the defaults too; `options` are those the model was opened with. Values that
    the engine would refuse are kept as they were asked for.
    """
    import engine

    asked = dict(request.get("params") or {})
    limits = {key: value for key, value in request.items() if key not in NOT_TOLD}
    names = {field.name for field in fields(engine.ContextParams)}
    context = {key: value for key, value in options.items() if key in names}
    return {
        "sampling": _whole(engine.SamplingParams, asked),
        "limits": _whole(engine.CompletionRequest, limits),
        "context": _whole(engine.ContextParams, context),
    }


def _whole(settings: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Return all values of a settings class as JSON can hold them, or what was asked for."""
    import engine

    try:
        made = settings(**asked)
    except engine.EngineError:
        return asked
    names = [field.name for field in fields(settings) if field.name not in NOT_TOLD]
    values = {name: getattr(made, name) for name in names}
    return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}
