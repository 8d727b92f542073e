"""Calls written as in a program: `[name(key=value)]`, and `call:name{key:<|"|>value<|"|>}`."""

import ast
import re
from dataclasses import dataclass
from typing import Any, ClassVar

from engine.chat.output.json_text import dumps, loads
from engine.chat.output.parts import Call, Tools

_QUOTE = '<|"|>'
MAX_LITERAL = 100_000  # characters of one call


@dataclass(frozen=True)
class PythonCalls:
    """A list of calls in Python's notation between two markers, read when it is finished."""

    starts: tuple[str, ...]
    end: str

    is_whole: ClassVar[bool] = False

    def one(
        self, text: str, place: int, tools: Tools, is_partial: bool
    ) -> tuple[Call | None, int | None]:
        """Read call after call of the list; the place counts them behind the marker."""
        start = next((len(m) + text.find(m) for m in self.starts if m in text), -1)
        stop = text.find(self.end, start)
        body = text[start : stop if stop >= 0 else len(text)].strip()
        if start < 0 or (stop < 0 and is_partial) or len(body) > MAX_LITERAL:
            return None, None
        calls = _python_calls(body)
        index = max(0, place - text.find(self.starts[0]))
        if index >= len(calls):
            return None, None
        return calls[index], place + 1 if index + 1 < len(calls) else None


def _python_calls(body: str) -> list[Call]:
    """Return the calls of a list in Python's notation; none if it is no such list."""
    try:
        tree = ast.parse(body, mode="eval").body
        nodes = tree.elts if isinstance(tree, ast.List) else [tree]
        return [_python_call(node) for node in nodes]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _python_call(node: ast.expr) -> Call:
    if not isinstance(node, ast.Call) or node.args:
        raise ValueError("no call by names")
    values = {str(each.arg): ast.literal_eval(each.value) for each in node.keywords}
    return Call(ast.unparse(node.func), dumps(values))


@dataclass(frozen=True)
class QuotedCalls:
    """`<|tool_call>call:name{key:<|"|>text<|"|>,n:1}<tool_call|>`, read when it is finished."""

    starts: tuple[str, ...]
    end: str

    is_whole: ClassVar[bool] = False

    def one(
        self, text: str, place: int, tools: Tools, is_partial: bool
    ) -> tuple[Call | None, int | None]:
        """Read one call; see `Reader`."""
        head = _HEAD.match(text, place)
        stop = text.find(self.end, place)
        if head is None or (stop < 0 and is_partial):
            return None, None
        body = text[head.end() : stop if stop >= 0 else len(text)]
        arguments = loads(_as_json("{" + body))
        if not isinstance(arguments, dict):
            return None, None
        return Call(head["name"], dumps(arguments)), stop + len(self.end) if stop >= 0 else None


_HEAD = re.compile(r"\s*<\|tool_call>call:(?P<name>[^{<]+)\{")
_KEY = re.compile(r"([{,]\s*)([A-Za-z_][\w.-]*)(\s*:)")


def _as_json(text: str) -> str:
    """Return the notation as JSON: texts by their own quotes, names in quotes."""
    parts = text.split(_QUOTE)
    for i, part in enumerate(parts):
        parts[i] = dumps(part) if i % 2 else _KEY.sub(_quoted, part)
    return "".join(parts)


def _quoted(found: "re.Match[str]") -> str:
    return f"{found[1]}{dumps(found[2])}{found[3]}"


def types_of(tools: Any) -> dict[str, Any]:
    """Return the parameters of tools as programs send them, by name; what is no tool is left out.

    `tools` is a list of {"type": "function", "function": {"name": …, "parameters": …}}.
    """
    found: dict[str, Any] = {}
    for tool in tools or ():
        function = tool.get("function", tool) if isinstance(tool, dict) else {}
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            found[function["name"]] = function.get("parameters") or {}
    return found
