"""Messages as programs send them: roles, parts, tool calls, checked before a template sees them."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from engine.chat import marked
from engine.errors import RequestError

ROLES = ("system", "developer", "user", "assistant", "tool")
MAX_DEPTH = 64
# A role stands inside control tokens (<|user|>), so it may hold nothing that could end one.
_ROLE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")


def checked(messages: Any) -> list[dict[str, Any]]:
    """Return copies of messages with every text marked as a message's, roles as plain text.

    A message is a mapping with `role`, and `content` (a text, parts, or None) or `tool_calls`; any
    other field is passed on. Raises RequestError naming the message that is wrong.
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise RequestError("Messages must be a list of objects with “role” and “content”.")
    found = [_checked(message, i) for i, message in enumerate(messages, 1)]
    if not found:
        raise RequestError("There is no message to answer: send at least one.")
    return found


def _checked(message: Any, i: int) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise RequestError(f"Message {i} must be an object with “role” and “content”.")
    role = message.get("role")
    if not isinstance(role, str) or not _ROLE.fullmatch(role):
        raise RequestError(
            f"Message {i} has the role {str(role)[:40]!r}; it must be one word, like “user”."
        )
    copied = {str(key): marked_copy(value) for key, value in message.items()}
    copied["role"] = role
    content, calls = copied.get("content"), copied.get("tool_calls")
    if "content" not in copied and not calls:
        raise RequestError(f"Message {i}: expected “content” or “tool_calls”.")
    if isinstance(content, list):
        _require_parts(content, i)
    elif content is not None and not isinstance(content, str):
        raise RequestError(f"Message {i}: “content” must be a text or a list of parts.")
    _require_calls(calls, i)
    return copied


def _require_parts(parts: list[Any], i: int) -> None:
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind != "text" or not isinstance(part.get("text"), str):
            raise RequestError(
                f"Message {i}: unsupported content part {str(kind)[:40]!r}; only texts can be read."
            )


def _require_calls(calls: Any, i: int) -> None:
    if calls is None:
        return
    if not isinstance(calls, list):
        raise RequestError(f"Message {i}: “tool_calls” must be a list.")
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise RequestError(f"Message {i}: a tool call needs a function with a name.")
        if call.get("type", "function") != "function":
            raise RequestError(f"Message {i}: the type of a tool call must be “function”.")


def marked_copy(value: Any, depth: int = 0) -> Any:
    """Return a deep copy of plain values in which every text is marked as a message's.

    Raises RequestError for what JSON could not hold, and beyond a depth of 64.
    """
    if depth > MAX_DEPTH:
        raise RequestError(f"A message is nested more than {MAX_DEPTH} deep.")
    if isinstance(value, str):
        return marked.from_message(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Mapping):
        return {str(key): marked_copy(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [marked_copy(inner, depth + 1) for inner in value]
    raise RequestError(f"A message holds a {type(value).__name__}, which is no text or number.")


def n_chars(value: Any) -> int:
    """Return how many characters of text a value from `marked_copy` holds."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(len(key) + n_chars(inner) for key, inner in value.items())
    return sum(map(n_chars, value)) if isinstance(value, list) else 8
