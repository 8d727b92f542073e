"""What can still be read from a damaged database, carried over row by row."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_TABLES = {
    "conversations": "id title created updated pinned model params leaf_id draft folder trashed",
    "messages": "id conversation_id parent_id role text state record created trashed",
}


def salvage(damaged: Path, target: sqlite3.Connection) -> int:
    """Copy all readable rows of `damaged` into an empty database; returns the messages kept.

    A message whose conversation is lost gets an empty one; one whose parent is lost becomes a
    first message.
    """
    try:
        source = sqlite3.connect(f"{damaged.absolute().as_uri()}?mode=ro", uri=True)
    except sqlite3.Error:
        return 0
    target.execute("PRAGMA foreign_keys = OFF")
    target.execute("BEGIN IMMEDIATE")
    try:
        for table, names in _TABLES.items():
            columns = names.split()
            places = ", ".join("?" * len(columns))
            insert = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({places})"
            for row in _readable(source, table, columns):
                _insert(target, insert, row)
        _mend(target)
        target.execute("COMMIT")
    except BaseException:
        target.execute("ROLLBACK")
        raise
    finally:
        target.execute("PRAGMA foreign_keys = ON")
        source.close()
    return int(target.execute("SELECT count(*) FROM messages").fetchone()[0])


def _readable(
    source: sqlite3.Connection, table: str, columns: list[str]
) -> Iterator[tuple[Any, ...]]:
    """Yield rows from the front up to the first damage, then from the back down to it."""
    last = 0
    names = ", ".join(columns)
    for order in ("ASC", "DESC"):
        try:
            query = f"SELECT {names} FROM {table} WHERE id > ? ORDER BY id {order}"
            for row in source.execute(query, (last,)):
                last = row[0] if order == "ASC" else last
                yield row
            return
        except sqlite3.Error:
            continue


def _insert(target: sqlite3.Connection, insert: str, row: tuple[Any, ...]) -> None:
    try:
        target.execute(insert, row)
    except (sqlite3.IntegrityError, sqlite3.InterfaceError):  # a row that damage made impossible
        return


def _mend(target: sqlite3.Connection) -> None:
    target.execute(
        "INSERT INTO conversations (id, title, created, updated)"
        " SELECT conversation_id, '', min(created), max(created) FROM messages"
        " WHERE conversation_id NOT IN (SELECT id FROM conversations) GROUP BY conversation_id"
    )
    target.execute(
        "UPDATE messages SET parent_id = NULL WHERE parent_id NOT IN (SELECT id FROM messages)"
    )
    target.execute(
        "UPDATE conversations SET leaf_id = (SELECT max(id) FROM messages m WHERE"
        " m.conversation_id = conversations.id) WHERE leaf_id IS NULL"
        " OR leaf_id NOT IN (SELECT id FROM messages)"
    )
