"""The schema of the database as numbered steps; a step that was published is never edited.

`PRAGMA user_version` counts the steps that a file has had. A copy of the file is made before
an older file is taken further.
"""

import sqlite3

# Running messages are left out of the index: they change every second and are indexed when done.
_FIRST = """
CREATE TABLE conversations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    title TEXT NOT NULL DEFAULT '',
    created REAL NOT NULL,
    updated REAL NOT NULL,
    pinned INTEGER NOT NULL DEFAULT 0,
    model TEXT NOT NULL DEFAULT '',
    params TEXT NOT NULL DEFAULT '{}',
    leaf_id INTEGER,
    draft TEXT NOT NULL DEFAULT '',
    folder TEXT NOT NULL DEFAULT '',
    trashed REAL
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation_id INTEGER NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
    parent_id INTEGER REFERENCES messages(id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    text TEXT NOT NULL,
    state TEXT NOT NULL,
    record TEXT NOT NULL DEFAULT '{}',
    created REAL NOT NULL,
    trashed REAL
);
CREATE INDEX messages_of ON messages(conversation_id, parent_id);
CREATE INDEX messages_below ON messages(parent_id);
CREATE INDEX messages_running ON messages(state) WHERE state = 'running';
CREATE VIRTUAL TABLE message_index USING fts5(
    text, content='messages', content_rowid='id', tokenize='trigram'
);
CREATE TRIGGER message_added AFTER INSERT ON messages WHEN new.state <> 'running' BEGIN
    INSERT INTO message_index(rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER message_removed AFTER DELETE ON messages WHEN old.state <> 'running' BEGIN
    INSERT INTO message_index(message_index, rowid, text) VALUES ('delete', old.id, old.text);
END;
CREATE TRIGGER message_unlisted BEFORE UPDATE OF text, state ON messages
WHEN old.state <> 'running' BEGIN
    INSERT INTO message_index(message_index, rowid, text) VALUES ('delete', old.id, old.text);
END;
CREATE TRIGGER message_listed AFTER UPDATE OF text, state ON messages
WHEN new.state <> 'running' BEGIN
    INSERT INTO message_index(rowid, text) VALUES (new.id, new.text);
END;
"""

STEPS: tuple[str, ...] = (_FIRST,)
VERSION = len(STEPS)


def version_of(connection: sqlite3.Connection) -> int:
    """Return how many steps a database has had."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection) -> None:
    """Take a database to this version, each step whole or not at all."""
    for number in range(version_of(connection), VERSION):
        script = f"BEGIN IMMEDIATE; {STEPS[number]} PRAGMA user_version = {number + 1}; COMMIT;"
        try:
            connection.executescript(script)
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
