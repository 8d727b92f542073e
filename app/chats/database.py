"""ChatDatabase: every conversation on the disk; each write is its own transaction.

After a power cut everything that a call stored before it returned is there; the growing text of
a running message (once a second) is there after the program was killed. Any thread may call.
"""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self

from app.chats import search as searching
from app.chats.conversation import ROLES, STATES, Conversation, Message, packed, storable, unpacked
from app.chats.opening import opened, storage_refusal
from app.chats.record import sound_params, sound_record
from app.chats.tree import BRANCH, CHILDREN, HIDE, NEWEST_LEAF, SHOW
from app.files import storage_error

_CONVERSATION = (
    "id, title, created, updated, pinned, model, params, leaf_id, draft, folder, trashed"
)
_MESSAGE = "id, conversation_id, parent_id, role, text, state, record, created"
_FIELDS = ("title", "pinned", "model", "params", "leaf_id", "draft", "folder")
DAY = 86_400.0


class ChatDatabase:
    """The conversations in one file, opened or made by the constructor.

    `notice` is a sentence to show when the file was damaged and set aside, else "". Raises
    StorageError (NewerFilesError for the file of a newer version). An id that does not exist
    raises KeyError, a field or word that does not exist ValueError.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._connection, self.notice = opened(path)
        self._search_lock = threading.Lock()
        self._reader: sqlite3.Connection | None = None  # so that no search holds up a write

    def close(self) -> None:
        """Close the file; every stored thing is already in it."""
        with self._search_lock, self._lock:
            self._reader = self._reader or self._connection  # closed, and not opened again
            self._reader.close()
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Conversations

    def create_conversation(self, title: str = "", **fields: Any) -> Conversation:
        """Store a new, empty conversation; `fields` as in `update_conversation`."""
        now = time.time()
        values = _columns({"title": title, **fields}) | {"created": now, "updated": now}
        names, places = ", ".join(values), ", ".join("?" * len(values))
        with self._write() as connection:
            made = connection.execute(
                f"INSERT INTO conversations ({names}) VALUES ({places})", tuple(values.values())
            )
            return self.conversation(int(made.lastrowid or 0))

    def conversation(self, conversation_id: int) -> Conversation:
        """Return one conversation, in the trash or not."""
        rows = self._read(
            f"SELECT {_CONVERSATION} FROM conversations WHERE id = ?", (conversation_id,)
        )
        if not rows:
            raise KeyError(f"no conversation {conversation_id}")
        return _conversation(rows[0])

    def conversations(self) -> list[Conversation]:
        """Return all conversations outside the trash: pinned first, then the last used."""
        rows = self._read(
            f"SELECT {_CONVERSATION} FROM conversations WHERE trashed IS NULL"
            " ORDER BY pinned DESC, updated DESC, id DESC"
        )
        return [_conversation(row) for row in rows]

    def update_conversation(self, conversation_id: int, **fields: Any) -> Conversation:
        """Change any of title, pinned, model, params, leaf_id, draft, folder; returns the result.

        Does not move the conversation in the list: only messages do.
        """
        values = _columns(fields)
        leaf_id = values.get("leaf_id")
        if leaf_id is not None and self.message(leaf_id).conversation_id != conversation_id:
            raise ValueError(f"message {leaf_id} is not in conversation {conversation_id}")
        if values:
            self._set("conversations", conversation_id, values, lasting=set(values) != {"draft"})
        return self.conversation(conversation_id)

    def trash(self, conversation_id: int) -> None:
        """Put a conversation into the trash, from where `restore` brings it back."""
        self._set("conversations", conversation_id, {"trashed": time.time()})

    def restore(self, conversation_id: int) -> None:
        """Take a conversation out of the trash."""
        self._set("conversations", conversation_id, {"trashed": None})

    def trashed(self) -> list[Conversation]:
        """Return the conversations in the trash, the last deleted first."""
        rows = self._read(
            f"SELECT {_CONVERSATION} FROM conversations WHERE trashed IS NOT NULL"
            " ORDER BY trashed DESC"
        )
        return [_conversation(row) for row in rows]

    def empty_trash(self, older_than_days: float = 30) -> int:
        """Remove for good what was deleted longer ago; returns how many conversations."""
        before = time.time() - older_than_days * DAY
        with self._write() as connection:
            connection.execute("DELETE FROM messages WHERE trashed < ?", (before,))
            gone = connection.execute("DELETE FROM conversations WHERE trashed < ?", (before,))
            return gone.rowcount

    # Messages

    def add_message(
        self,
        conversation_id: int,
        parent_id: int | None,
        role: str,
        text: str,
        state: str = "finished",
        **record: Any,
    ) -> Message:
        """Store a message below `parent_id` (None: a first one) and make it the branch on show."""
        _known(role, ROLES, "role")
        _known(state, STATES, "state")
        self.conversation(conversation_id)
        if parent_id is not None and self.message(parent_id).conversation_id != conversation_id:
            raise ValueError(f"message {parent_id} is not in conversation {conversation_id}")
        now = time.time()
        values = (conversation_id, parent_id, role, storable(text), state, packed(record), now)
        with self._write() as connection:
            made = connection.execute(
                "INSERT INTO messages (conversation_id, parent_id, role, text, state, record,"
                " created) VALUES (?, ?, ?, ?, ?, ?, ?)",
                values,
            )
            connection.execute(
                "UPDATE conversations SET leaf_id = ?, updated = ? WHERE id = ?",
                (made.lastrowid, now, conversation_id),
            )
            return self.message(int(made.lastrowid or 0))

    def message(self, message_id: int) -> Message:
        """Return one message."""
        rows = self._read(f"SELECT {_MESSAGE} FROM messages WHERE id = ?", (message_id,))
        if not rows:
            raise KeyError(f"no message {message_id}")
        return _message(rows[0])

    def messages(self, conversation_id: int) -> list[Message]:
        """Return all messages of a conversation, every branch, parents before children."""
        rows = self._read(
            f"SELECT {_MESSAGE} FROM messages WHERE conversation_id = ? AND trashed IS NULL"
            " ORDER BY id",
            (conversation_id,),
        )
        return [_message(row) for row in rows]

    def update_message(
        self,
        message_id: int,
        text: str | None = None,
        state: str | None = None,
        record: dict[str, Any] | None = None,
    ) -> None:
        """Change what is given; the keys of `record` are added to those already stored."""
        before = self.message(message_id)
        values: dict[str, Any] = {}
        if text is not None:
            values["text"] = storable(text)
        if state is not None:
            values["state"] = _known(state, STATES, "state")
        if record is not None:
            values["record"] = packed(before.record | record)
        if not values:
            return
        self._set("messages", message_id, values, lasting=(state or before.state) != "running")

    def branch(self, conversation_id: int, leaf_id: int | None = None) -> list[Message]:
        """Return the messages from the first to `leaf_id` (None: the branch on show)."""
        if leaf_id is None:
            leaf_id = self.conversation(conversation_id).leaf_id
        rows = self._read(BRANCH.format(columns=_MESSAGE), (leaf_id, conversation_id))
        return [_message(row) for row in rows]

    def siblings(self, message_id: int) -> list[Message]:
        """Return all versions of a message, itself among them, the oldest first."""
        message = self.message(message_id)
        where = (message.conversation_id, message.parent_id)
        return [_message(row) for row in self._read(CHILDREN.format(columns=_MESSAGE), where)]

    def newest_leaf(self, message_id: int) -> int:
        """Return the id of the last message written below a message, or its own."""
        return int(self._read(NEWEST_LEAF, (message_id,))[0][0] or message_id)

    def trash_message(self, message_id: int) -> None:
        """Hide a message and all below it; another version or its parent is on show then."""
        message = self.message(message_id)
        others = [other.id for other in self.siblings(message_id) if other.id != message_id]
        shown = {each.id for each in self.branch(message.conversation_id)}
        earlier = [other for other in others if other < message_id] or others
        with self._write() as connection:
            connection.execute(HIDE, (message_id, time.time()))
            if message_id in shown:
                leaf_id = self.newest_leaf(earlier[-1]) if earlier else message.parent_id
                self._set("conversations", message.conversation_id, {"leaf_id": leaf_id})

    def restore_message(self, message_id: int) -> None:
        """Show a message again that `trash_message` hid, with all below it."""
        conversation_id = self.message(message_id).conversation_id
        with self._write() as connection:
            connection.execute(SHOW, (message_id, message_id))
            leaf_id = self.newest_leaf(message_id)
            self._set("conversations", conversation_id, {"leaf_id": leaf_id})

    # All of them

    def search(self, text: str, limit: int = 50) -> list[searching.Hit]:
        """Return titles and messages that hold all words of `text`, the newest first."""
        with self._search_lock, _refusals():
            if self._reader is None:
                self._reader = searching.reader(self.path)
            return searching.search(self._reader, text, limit)

    def recover(self) -> int:
        """Mark answers that a crash cut off as interrupted; returns how many. Call at start."""
        with self._write() as connection:
            cut = connection.execute(
                "UPDATE messages SET state = 'interrupted' WHERE state = 'running'"
            )
            return cut.rowcount

    def back_up(self, path: Path) -> None:
        """Copy the whole database to `path` while it is in use; raises StorageError."""
        beside = path.with_name(path.name + ".part")
        try:
            beside.unlink(missing_ok=True)
            with _refusals(), closing(sqlite3.connect(self.path)) as source:
                with closing(sqlite3.connect(beside)) as target:
                    source.backup(target)  # its own connection: one snapshot, writers go on
            beside.replace(path)
        except OSError as error:
            raise storage_error(error, path) from error

    def together(self) -> AbstractContextManager[object]:
        """Make what is done inside one transaction: all of it is stored, or nothing."""
        return self._write()

    def insert(
        self, fields: dict[str, Any], messages: list[Message], leaf_id: int | None
    ) -> Conversation:
        """Store a conversation with all its messages, given in any numbering, parents first.

        `fields` are those of Conversation except id, leaf_id and trashed.
        """
        times = {name: fields[name] for name in ("created", "updated")}
        others = {name: value for name, value in fields.items() if name not in times}
        with self._write():
            conversation_id = self.create_conversation(**others).id
            numbers: dict[int | None, int | None] = {None: None}
            for each in messages:
                parent_id = numbers[each.parent_id]
                added = self.add_message(
                    conversation_id, parent_id, each.role, each.text, each.state
                )
                numbers[each.id] = added.id
                details = {"record": packed(each.record), "created": each.created}
                self._set("messages", added.id, details)
            leaf = numbers[leaf_id] if leaf_id is not None else None
            self._set("conversations", conversation_id, times | {"leaf_id": leaf})
            return self.conversation(conversation_id)

    @contextmanager
    def _write(self, lasting: bool = True) -> Iterator[sqlite3.Connection]:
        """One transaction, on the disk when it returns if `lasting`; a nested one joins it."""
        with self._lock, _refusals():
            connection = self._connection
            if connection.in_transaction:
                yield connection
                return
            connection.execute(f"PRAGMA synchronous = {'FULL' if lasting else 'NORMAL'}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _set(self, table: str, row_id: int, values: dict[str, Any], lasting: bool = True) -> None:
        assignments = ", ".join(f"{name} = ?" for name in values)
        with self._write(lasting) as connection:
            done = connection.execute(
                f"UPDATE {table} SET {assignments} WHERE id = ?", (*values.values(), row_id)
            )
            if not done.rowcount:
                raise KeyError(f"no {table.removesuffix('s')} {row_id}")

    def _read(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with self._lock, _refusals():
            return self._connection.execute(query, values).fetchall()


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise storage_refusal(error) from error


def _known(word: str, words: tuple[str, ...], what: str) -> str:
    if word not in words:
        near = get_close_matches(word, words, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"there is no {what} {word!r}{hint}")
    return word


def _columns(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields of a conversation as the database stores them."""
    stored: dict[str, Any] = {}
    for name, value in fields.items():
        _known(name, _FIELDS, "field")
        if name == "params":
            stored[name] = packed(value)
        elif name == "pinned":
            stored[name] = int(bool(value))
        else:
            stored[name] = storable(value) if isinstance(value, str) else value
    return stored


def _conversation(row: tuple[Any, ...]) -> Conversation:
    first, (pinned, model, params), rest = row[:4], row[4:7], row[7:]
    return Conversation(*first, bool(pinned), model, sound_params(unpacked(params)), *rest)  # type: ignore[call-arg]


def _message(row: tuple[Any, ...]) -> Message:
    return Message(*row[:6], sound_record(unpacked(row[6])), row[7])  # type: ignore[call-arg]
