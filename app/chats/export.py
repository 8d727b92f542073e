"""Conversations as Markdown to read and as JSON that loses nothing and can be read back."""

import json
import time
from collections.abc import Iterable
from typing import Any

from app.chats.conversation import ROLES, STATES, Conversation, Message, storable
from app.chats.database import ChatDatabase
from app.errors import ExchangeError
from app.strings import tr

FORMAT = "inglenook conversations"
VERSION = 1
MAX_BYTES = 1 << 30
_SPEAKERS = {"system": "System", "user": "You", "assistant": "Model", "tool": "Tool"}
_FIELDS = ("title", "created", "updated", "pinned", "model", "params", "draft", "folder")


def markdown(conversation: Conversation, branch: Iterable[Message], reasoning: bool = False) -> str:
    """Return one branch as Markdown, with the model's reasoning quoted if asked for."""
    day = time.strftime("%Y-%m-%d", time.localtime(conversation.created))
    parts = [f"# {conversation.title or tr('Untitled')}", f"*{day}*"]
    for message in branch:
        parts.append(f"## {tr(_SPEAKERS[message.role])}")
        thoughts = message.record.get("reasoning")
        if reasoning and isinstance(thoughts, str) and thoughts.strip():
            parts.append("\n".join(f"> {line}".rstrip() for line in thoughts.strip().split("\n")))
        parts.append(message.text.strip("\n"))
    return "\n\n".join(parts) + "\n"


def json_text(database: ChatDatabase, conversation_ids: Iterable[int]) -> str:
    """Return conversations with every branch and record as JSON; `read_json` takes it back."""
    conversations = []
    for conversation_id in conversation_ids:
        conversation = database.conversation(conversation_id)
        fields = {name: getattr(conversation, name) for name in _FIELDS}
        messages = [_plain(message) for message in database.messages(conversation_id)]
        conversations.append(fields | {"leaf": conversation.leaf_id, "messages": messages})
    whole = {"format": FORMAT, "version": VERSION, "conversations": conversations}
    return storable(json.dumps(whole, ensure_ascii=False, indent=1))


def read_json(database: ChatDatabase, text: str | bytes) -> list[Conversation]:
    """Store the conversations of a JSON text as new ones, all or none, and return them.

    Raises ExchangeError for anything that `json_text` did not write; nothing is stored then.
    """
    try:
        whole = json.loads(text) if len(text) <= MAX_BYTES else None
    except (ValueError, RecursionError):
        whole = None
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        raise ExchangeError(
            tr("This file holds no conversations of Inglenook; choose one that was exported here.")
        )
    if whole.get("version") != VERSION:
        raise ExchangeError(
            tr("This file was exported by a newer version of the program; use that one to read it.")
        )
    try:
        made = [_checked(given) for given in whole["conversations"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ExchangeError(
            tr("This file is damaged and nothing was read from it ({reason}).", reason=str(error))
        ) from error
    with database.together():
        return [database.insert(fields, messages, leaf) for fields, messages, leaf in made]


def _plain(message: Message) -> dict[str, Any]:
    names = ("id", "role", "text", "state", "record", "created")
    return {name: getattr(message, name) for name in names} | {"parent": message.parent_id}


def _checked(given: dict[str, Any]) -> tuple[dict[str, Any], list[Message], int | None]:
    """Return one conversation of a file, or raise KeyError, TypeError or ValueError."""
    kinds = (str, float, float, bool, str, dict, str, str)
    fields = {}
    for name, kind in zip(_FIELDS, kinds, strict=True):
        fields[name] = _of_kind(given[name], kind, name)
    messages: list[Message] = []
    known: set[int] = set()
    for each in given["messages"]:
        parent = each["parent"]
        if parent is not None and parent not in known:
            raise ValueError(f"message {each['id']} comes before its parent")
        if each["id"] in known or each["role"] not in ROLES or each["state"] not in STATES:
            raise ValueError(f"message {each['id']} is not possible")
        known.add(_of_kind(each["id"], int, "id"))
        text, record = _of_kind(each["text"], str, "text"), _of_kind(each["record"], dict, "record")
        created = _of_kind(each["created"], float, "created")
        role, state = each["role"], each["state"]
        if state == "running":  # nobody writes it where it is read
            state = "interrupted"
        messages.append(Message(each["id"], 0, parent, role, text, state, record, created))
    leaf = given.get("leaf")
    return fields, messages, leaf if leaf in known else None


def _of_kind(value: Any, kind: type, name: str) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{name} is not {kind.__name__}")
    return value
