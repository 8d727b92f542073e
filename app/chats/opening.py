"""Opens the file of a ChatDatabase: makes it, migrates it, or sets a damaged one aside."""

import os
import sqlite3
from pathlib import Path

from app.chats import migrations
from app.chats.salvage import salvage
from app.errors import DamagedChatsError, NewerFilesError, StorageError
from app.files import set_aside, storage_error
from app.strings import tr

_BESIDE = ("-wal", "-shm")
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def opened(path: Path) -> tuple[sqlite3.Connection, str]:
    """Return a connection to the conversations at `path`, and a notice to show or "".

    A damaged file is renamed, never deleted; what it still holds is carried over to a new one.
    Raises NewerFilesError for a file of a newer version, StorageError when the disk refuses.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(error, path) from error
    try:
        return _connect(path), ""
    except sqlite3.Error as error:
        refusal = storage_refusal(error)
        if not isinstance(refusal, DamagedChatsError):
            raise refusal from error
    aside = _all_aside(path)
    connection = _connect(path)
    n_messages = salvage(aside, connection)
    notice = tr(
        "The conversations were damaged; {n} messages could be kept, and the old file is kept"
        " as “{name}” in {folder}.",
        n=n_messages,
        name=aside.name,
        folder=str(aside.parent),
    )
    return connection, notice


def storage_refusal(error: sqlite3.Error) -> StorageError:
    """Return the sentence for an error of the database."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StorageError(
            tr("The disk is full: the last change was not saved; free some space and try again.")
        )
    if code in _DAMAGE:
        return DamagedChatsError(
            tr(
                "The conversations are damaged on the disk; start the program again, and what can"
                " be read is carried over to a new file."
            )
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StorageError(
            tr("The conversations cannot be written; allow it for their folder and try again.")
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StorageError(tr("Another program holds the conversations; close it and try again."))
    return StorageError(tr("The conversations could not be saved ({reason}).", reason=str(error)))


def _connect(path: Path) -> sqlite3.Connection:
    _check_magic(path)
    ended_badly = path.with_name(path.name + "-wal").exists()
    connection = sqlite3.connect(path, timeout=5, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        version = migrations.version_of(connection)
        if version > migrations.VERSION:
            raise NewerFilesError(
                tr(
                    "The conversations were written by a newer version of the program; use that"
                    " one, or move “{name}” away to start afresh.",
                    name=path.name,
                )
            )
        if 0 < version < migrations.VERSION:
            _copy(connection, path.with_name(f"{path.name}.version-{version}"))
        migrations.migrate(connection)
        _check(connection, thoroughly=ended_badly)
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection, thoroughly: bool) -> None:
    """Raise sqlite3.DatabaseError if the file is not what it should be."""
    for table in ("conversations", "messages", "message_index"):
        connection.execute(f"SELECT * FROM {table} ORDER BY rowid DESC LIMIT 1").fetchone()
    if thoroughly:
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise _damage(verdict)


def _check_magic(path: Path) -> None:
    """Raise for a file that SQLite would take for empty and write over."""
    try:
        with open(path, "rb") as file:
            start = file.read(16)
    except OSError:
        return  # missing, or SQLite will say what is wrong
    if start and start != b"SQLite format 3\0":
        raise _damage("not a database")


def _damage(reason: str) -> sqlite3.DatabaseError:
    damage = sqlite3.DatabaseError(reason)
    damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return damage


def _copy(connection: sqlite3.Connection, path: Path) -> None:
    target = sqlite3.connect(path)
    try:
        connection.backup(target)
    finally:
        target.close()


def _all_aside(path: Path) -> Path:
    """Rename the database and the files that belong to it, so that they still fit together."""
    aside = set_aside(path)
    for ending in _BESIDE:
        beside = path.with_name(path.name + ending)
        try:
            os.replace(beside, aside.with_name(aside.name + ending))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise storage_error(error, beside) from error
    return aside
