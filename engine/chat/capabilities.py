"""What a template does with roles, parts and tools, found by rendering small conversations.

And what follows from it: messages are changed into what the template can show, so that no part of
a conversation is lost without a word.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.chat import marked
from engine.errors import RequestError

_NEEDLE = "needle7f3a"
_OTHER = "other91bc"
Try = Callable[[list[dict[str, Any]], Any], str | None]


@dataclass(frozen=True)
class Capabilities:
    """What a template can show."""

    string_content: bool
    typed_content: bool
    system_role: bool
    tools: bool
    tool_calls: bool
    parallel_tool_calls: bool
    object_arguments: bool
    reasoning: bool


def probe(render: Try, source: str) -> Capabilities:
    """Find out by rendering; `render` returns None where the template fails."""

    def shows(messages: list[dict[str, Any]], *words: str, tools: Any = None) -> bool:
        text = render(messages, tools) or ""
        return all(word in text for word in words)

    user = {"role": "user", "content": "hello"}
    parts = [{"type": "text", "text": _NEEDLE}]
    typed = render([{"role": "user", "content": parts}], None) or ""
    objects = shows([user, _calling({_NEEDLE: 1})], _NEEDLE)
    arguments = render([user, _calling({_NEEDLE: 1})], None) or ""
    texts = render([user, _calling(json.dumps({_NEEDLE: 1}))], None)
    return Capabilities(
        string_content=shows([{"role": "user", "content": _NEEDLE}], _NEEDLE),
        typed_content=_NEEDLE in typed and "'type'" not in typed and '"type"' not in typed,
        system_role=shows([{"role": "system", "content": _NEEDLE}, user], _NEEDLE),
        tools="tools" in source and shows([user], _NEEDLE, tools=[_tool()]),
        tool_calls=shows([user, _calling({}, _NEEDLE)], _NEEDLE)
        or shows([user, _calling("{}", _NEEDLE)], _NEEDLE),
        parallel_tool_calls=shows([user, _calling({}, _NEEDLE, _OTHER)], _NEEDLE, _OTHER)
        or shows([user, _calling("{}", _NEEDLE, _OTHER)], _NEEDLE, _OTHER),
        object_arguments=objects and "{'" not in arguments and _is_escaped(texts),
        reasoning=shows(
            [user, {"role": "assistant", "content": "hi", "reasoning_content": _NEEDLE}, user],
            _NEEDLE,
        ),
    )


def _is_escaped(text: str | None) -> bool:
    """Tell whether arguments given as JSON text came out wrong: not at all, or quoted again."""
    return text is None or _NEEDLE not in text or f'\\"{_NEEDLE}' in text


def _calling(arguments: Any, *names: str) -> dict[str, Any]:
    calls = [
        {"type": "function", "id": "call12345", "function": {"name": name, "arguments": arguments}}
        for name in names or ("act",)
    ]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def _tool() -> dict[str, Any]:
    parameters = {"type": "object", "properties": {}, "required": []}
    function = {"name": _NEEDLE, "description": "does it", "parameters": parameters}
    return {"type": "function", "function": function}


def fit(messages: list[dict[str, Any]], can: Capabilities, source: str) -> list[dict[str, Any]]:
    """Return messages as the template can show them; the given ones may be changed.

    Raises RequestError for tool arguments that are not JSON where the template needs objects.
    """
    for each in messages:
        if each["role"] == "developer" and "<|channel|>" not in source:
            each["role"] = "system"
        if each.get("content") is None:
            each["content"] = ""
        _fit_content(each, can)
        for call in each.get("tool_calls") or ():
            _fit_arguments(call["function"], can)
    fitted = messages if can.system_role else _without_system(messages)
    if "You have access to the following functions in JSONSchema format" in source:
        for each in fitted:
            for name in ("content", "reasoning_content"):
                if isinstance(each.get(name), str):
                    each[name] = marked.strip(each[name])
    return fitted


def _fit_content(each: dict[str, Any], can: Capabilities) -> None:
    content = each["content"]
    if isinstance(content, list) and not can.typed_content:
        each["content"] = marked.join("\n", [part["text"] for part in content])
    elif isinstance(content, str) and can.typed_content and not can.string_content:
        each["content"] = [{"type": "text", "text": content}]


def _fit_arguments(function: dict[str, Any], can: Capabilities) -> None:
    arguments = function.get("arguments", {})
    if can.object_arguments and isinstance(arguments, str):
        try:
            function["arguments"] = json.loads(marked.plain(arguments) or "{}")
        except ValueError as error:
            raise RequestError(
                f"The arguments of the tool call “{function['name']}” are not JSON: {error}."
            ) from error
    elif not can.object_arguments and isinstance(arguments, dict):
        function["arguments"] = marked.from_message(json.dumps(arguments, ensure_ascii=False))


def _without_system(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put what the system says before what comes next."""
    fitted: list[dict[str, Any]] = []
    said: Any = None
    for each in messages:
        if each["role"] == "system":
            said = each["content"] if said is None else _both(said, each["content"])
            continue
        if said is not None:
            each["content"], said = _both(said, each["content"]), None
        fitted.append(each)
    return fitted or messages


def _both(first: Any, second: Any) -> Any:
    if isinstance(first, list) or isinstance(second, list):
        return [*_as_parts(first), *_as_parts(second)]
    return marked.concat((first, "\n", second))


def _as_parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]
