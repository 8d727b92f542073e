"""Conversation and Message as plain values: what the database hands out."""

import json
from dataclasses import dataclass, field
from typing import Any

ROLES = ("system", "user", "assistant", "tool")
STATES = ("finished", "running", "interrupted", "failed", "cancelled")
TITLE_LENGTH = 60


@dataclass(frozen=True)
class Conversation:
    """One conversation without its messages; times are seconds since 1970 (UTC).

    `leaf_id` is the last message of the branch on show; `params` what its requests ask for;
    `draft` what stands in the composer; `trashed` when it was deleted, or None.
    """

    id: int
    title: str
    created: float
    updated: float
    pinned: bool = False
    model: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    leaf_id: int | None = None
    draft: str = ""
    folder: str = ""
    trashed: float | None = None


@dataclass(frozen=True)
class Message:
    """One message of a tree: `parent_id` is None for a first one.

    `record` holds how it came about: model, seed, sampler values, timings, reasoning.
    """

    id: int
    conversation_id: int
    parent_id: int | None
    role: str
    text: str
    state: str = "finished"
    record: dict[str, Any] = field(default_factory=dict)
    created: float = 0.0


def title_of(question: str) -> str:
    """Return the first line of a question, without Markdown marks, cut at a word to 60 letters."""
    lines = (line.strip().lstrip("#>*-` ").strip() for line in question.splitlines())
    line = " ".join(next((line for line in lines if line), "").split())
    if len(line) <= TITLE_LENGTH:
        return line
    cut = line[: TITLE_LENGTH - 1]
    at_word = cut.rsplit(" ", 1)[0]
    return (at_word if len(at_word) > TITLE_LENGTH // 2 else cut).rstrip() + "…"


def storable(text: str) -> str:
    """Return `text` with lone surrogates, which no UTF-8 can hold, replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def packed(values: dict[str, Any]) -> str:
    """Return a record as JSON text; raises TypeError for a value that JSON does not know."""
    return json.dumps(values, separators=(",", ":"))


def unpacked(text: str) -> dict[str, Any]:
    """Return the record in a JSON text; an unreadable one is kept under the key "unreadable"."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    return values if isinstance(values, dict) else {"unreadable": text}
