"""What an answer must be, as a conversation keeps it: a kind and a text, checked by the engine."""

from collections.abc import Mapping
from typing import Any

from app.strings import tr


def constraint_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a request that hold an answer to the constraint of a conversation."""
    kept = params.get("constraint")
    if not isinstance(kept, Mapping) or not kept.get("kind"):
        return {}
    import engine

    try:
        return engine.constraint_options(str(kept["kind"]), str(kept.get("text", "")))
    except engine.RequestError:  # of a newer version: the answer is free rather than lost
        return {}


def check(kind: str, text: str) -> str:
    """Return what is wrong with a constraint, "" for one that can be kept. Takes up to a second."""
    import engine

    return engine.check_constraint(kind, text) if kind else ""


def hint(kind: str) -> str:
    """Return what to type for a kind of constraint."""
    hints = {
        "": "The answer may be anything.",
        "json": "The answer is one JSON value.",
        "json_schema": "The answer is JSON that this schema allows.",
        "gbnf": "The answer is a text of this grammar; it begins with the rule “root”.",
        "regex": "The whole answer matches this regular expression.",
    }
    return tr(hints.get(kind, ""))
