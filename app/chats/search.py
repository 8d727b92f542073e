"""Full text search over titles and messages, for whole words, parts of words and any script."""

import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from app.chats.conversation import storable

AROUND = 60  # characters of text shown on each side of a hit
MAX_WORDS = 16


@dataclass(frozen=True)
class Hit:
    """A conversation whose title (message_id None) or message has all the words looked for.

    `marks` are the half-open ranges of `snippet` to highlight.
    """

    conversation_id: int
    message_id: int | None
    title: str
    snippet: str
    marks: tuple[tuple[int, int], ...]
    when: float


def reader(path: Path) -> sqlite3.Connection:
    """Return a connection that only reads and knows the comparison for short words and titles."""
    connection = sqlite3.connect(path, timeout=5, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA query_only = ON")
    connection.create_function("holds", 2, _holds, deterministic=True)
    return connection


def search(connection: sqlite3.Connection, text: str, limit: int) -> list[Hit]:
    """Return up to `limit` titles and then up to `limit` messages, the newest first.

    All words must be found, in any order, as parts of words, without regard to case. Text in
    "quotes" is one word.
    """
    words = words_of(text)
    if not words:
        return []
    rows = connection.execute(*_titles(words, limit)).fetchall()
    rows += connection.execute(*_messages(words, limit)).fetchall()
    return [_hit(row, words) for row in rows]


def words_of(text: str) -> list[str]:
    """Return the words of a query; a quoted part is one word."""
    found = re.findall(r'"([^"]+)"|(\S+)', storable(text))
    words = (" ".join(quoted.split()) or single.strip('"') for quoted, single in found)
    return [word for word in words if word][:MAX_WORDS]


def _titles(words: list[str], limit: int) -> tuple[str, list[str | int]]:
    conditions = " AND ".join("holds(title, ?)" for _ in words)
    return (
        "SELECT id, NULL, title, title, updated FROM conversations"
        f" WHERE trashed IS NULL AND {conditions} ORDER BY updated DESC LIMIT ?",
        [*words, limit],
    )


def _messages(words: list[str], limit: int) -> tuple[str, list[str | int]]:
    """Return the query: the index finds words of three letters, the rest is compared."""
    long = [word for word in words if len(word) >= 3]
    short = [word for word in words if len(word) < 3]
    conditions = ["m.trashed IS NULL", "c.trashed IS NULL"]
    if long:
        conditions.append("m.id IN (SELECT rowid FROM message_index WHERE message_index MATCH ?)")
    conditions += ["holds(m.text, ?)"] * len(short)
    given: list[str | int] = [" ".join('"' + w.replace('"', '""') + '"' for w in long)] * bool(long)
    return (
        "SELECT c.id, m.id, c.title, m.text, m.created FROM messages m"
        f" JOIN conversations c ON c.id = m.conversation_id WHERE {' AND '.join(conditions)}"
        " ORDER BY m.created DESC LIMIT ?",
        [*given, *short, limit],
    )


def _holds(text: str, word: str) -> bool:
    return word.casefold() in text.casefold()


def _hit(row: tuple[int, int | None, str, str, float], words: list[str]) -> Hit:
    conversation_id, message_id, title, text, when = row
    pattern = re.compile("|".join(re.escape(word) for word in words), re.IGNORECASE)
    first = pattern.search(text)
    at = first.start() if first else 0
    start, end = max(0, at - AROUND), at + AROUND
    snippet = ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
    snippet = re.sub(r"\s", " ", snippet)
    marks = tuple(found.span() for found in pattern.finditer(snippet))
    return Hit(conversation_id, message_id, title, snippet, marks, when)
