"""What records of answers and params of chats may hold: entries of another shape are left out.

They also come from files of other people. An entry that nobody here knows is kept as it is.
"""

import math
from collections.abc import Callable
from typing import Any

MOST_RUNS = 1000
TIMINGS = (
    *("n_prompt", "n_cached", "n_read", "read_ms", "first_token_ms", "n_generated"),
    *("generate_ms", "read_tps", "generate_tps"),
)


def sound_record(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record in which every known entry has the shape that this program writes."""
    kept = {k: v for k, v in record.items() if k not in _SHAPES or _SHAPES[k](v)}
    if "changes" in kept:
        kept["changes"] = [change for change in kept["changes"] if _is_change(change)]
    if "runs" in kept:
        runs = [run for run in kept["runs"][:MOST_RUNS] if isinstance(run, dict)]
        kept["runs"] = [sound_record({k: v for k, v in run.items() if k != "runs"}) for run in runs]
    return kept


def sound_params(params: dict[str, Any]) -> dict[str, Any]:
    """Return the params of a chat in which every known entry has its shape."""
    return {k: v for k, v in params.items() if k not in _PARAMS or _PARAMS[k](v)}


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**53


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and 0 <= value < 1e15


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


def _are_timings(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_number(value.get(name)) for name in TIMINGS)


def _is_error(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(part, str) for part in value.values())


def _is_change(value: Any) -> bool:
    is_object = isinstance(value, dict) and isinstance(value.get("values"), dict)
    return is_object and _is_count(value.get("at"))


_SHAPES: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("seed", "start", "end", "n_run", "n_cached", "n_used", "n_reread"), _is_count),
    **dict.fromkeys(("model", "mark", "stop_type", "system"), _is_text),
    **dict.fromkeys(("sampling", "limits", "context", "sources"), _is_object),
    **dict.fromkeys(("changes", "runs"), _is_list),
    "thought_s": _is_number,
    "timings": _are_timings,
    "error": _is_error,
}
_PARAMS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("sampling", "sources", "constraint", "constraint_draft"), _is_object),
    **dict.fromkeys(("n_predict", "reasoning_budget", "seed"), _is_count),
    "system": _is_text,
    "stop": _are_texts,
}
