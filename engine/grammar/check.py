"""Checks of what a person types as a constraint: a sentence with the place, or nothing."""

import json
from typing import Any

from engine.errors import GrammarError, RequestError, nearest

CONSTRAINT_KINDS = ("json", "json_schema", "gbnf", "regex")


def check_constraint(kind: str, text: str) -> str:
    """Return what is wrong with a constraint, "" if an answer could be held to it.

    `kind` is one of CONSTRAINT_KINDS; "json" needs no text. Takes up to a second, so a window asks
    beside its own thread. Raises RequestError for another kind.
    """
    if kind not in CONSTRAINT_KINDS:
        raise RequestError(f"There is no kind “{kind}”.{nearest(kind, CONSTRAINT_KINDS)}")
    if kind == "json":
        return ""
    if not text.strip():
        return "There is nothing here yet."
    from engine.grammar.constraint import Constraint

    try:
        if kind == "json_schema":
            Constraint.from_json_schema(_read(text))
        elif kind == "regex":
            Constraint.from_regex(text)
        else:
            Constraint.from_gbnf(text, _any_tokens)
    except GrammarError as error:
        return str(error)
    return ""


def constraint_options(kind: str, text: str) -> dict[str, Any]:
    """Return the options of a CompletionRequest that hold its answer to a constraint.

    Raises RequestError for another kind; the text itself is checked with the request.
    """
    if kind not in CONSTRAINT_KINDS:
        raise RequestError(f"There is no kind “{kind}”.{nearest(kind, CONSTRAINT_KINDS)}")
    if kind == "json":
        return {"json_schema": True}
    return {{"gbnf": "grammar"}.get(kind, kind): text}


def _read(text: str) -> Any:
    """Return a schema; raises GrammarError with the line for what is no JSON."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise GrammarError(
            f"This is not JSON yet: {error.msg}, line {error.lineno}, column {error.colno}."
        ) from error
    except (RecursionError, ValueError) as error:
        raise GrammarError("This JSON is nested too deeply to be a schema.") from error


def _any_tokens(text: str) -> list[int]:
    """Stand in for the tokens of a model, which may not be loaded yet: every text is one token."""
    return [0]
