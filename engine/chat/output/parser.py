"""OutputParser: the text of an answer as it comes, to reasoning, content and calls as they grow."""

import re
from dataclasses import replace
from typing import Any

from engine.chat.output.harmony import read_harmony
from engine.chat.output.literal_calls import types_of
from engine.chat.output.parts import Call, Output, certain, first, read_calls
from engine.chat.output.syntax import OutputSyntax

_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*", re.DOTALL)


def read_output(
    text: str,
    syntax: OutputSyntax,
    *,
    tools: Any = None,
    is_open: bool = False,
    is_json: bool = False,
    is_partial: bool = False,
) -> Output:
    """Return the parts of what a model said.

    `is_open`: the prompt has begun the reasoning. `tools` as programs send them; without any,
    calls stay content. `is_json`: the content is held to a schema, so a fence around it goes. With
    `is_partial` more may come: what may still become a marker is left out.
    """
    whole = text if text.startswith(syntax.lead[:8]) else syntax.lead + text
    if syntax.is_harmony:
        found = read_harmony(whole, is_partial)
        if found is None:
            return Output(content="" if is_partial else text)
        return found if tools else replace(found, calls=())
    reasoning, rest = _split(whole, syntax, is_open, is_partial)
    for frame in syntax.frames:
        rest = rest.replace(frame, "")
    if is_partial and syntax.frames:
        rest = certain(rest, syntax.frames)
    calls: tuple[Call, ...] = ()
    if tools and syntax.calls is not None:
        rest, calls = read_calls(rest, syntax.calls, types_of(tools), is_partial)
    if not is_partial and not calls and syntax.lead:
        rest = rest.removeprefix(syntax.lead)
    if is_json:
        fenced = _FENCE.fullmatch(rest)
        rest = fenced[1] if fenced else rest.strip()
    return Output(reasoning, rest, calls)


def _split(text: str, syntax: OutputSyntax, is_open: bool, is_partial: bool) -> tuple[str, str]:
    """Return reasoning and the rest; a thought without an end is all thought."""
    if syntax.tags is None:
        return "", text
    start, end = syntax.tags
    shown = text.lstrip()
    if shown.startswith(start):
        body = shown[len(start) :]
    elif is_open:
        body = shown
    elif is_partial and start.startswith(shown):
        return "", ""
    else:
        # Some models leave the first tag out: then the last one tells.
        body = text if end in text and not is_partial else ""
        if not body:
            return "", text
    marks = (end, *(syntax.calls.starts if syntax.name == "coder" and syntax.calls else ()))
    at = first(body, marks)
    if at < 0:
        thought = certain(body, marks).rstrip() if is_partial else body.rstrip()
        return thought.lstrip(), ""
    rest = body[at:].removeprefix(end)
    return body[:at].strip(), rest.lstrip()


class OutputParser:
    """Takes an answer piece by piece; each part that it returns is only what is new.

    Calls come with their name when it is complete, then their arguments as they grow.
    """

    def __init__(
        self,
        syntax: OutputSyntax,
        *,
        tools: Any = None,
        is_open: bool = False,
        is_json: bool = False,
    ) -> None:
        self._syntax, self._tools = syntax, tools
        self._is_open, self._is_json = is_open, is_json
        self._text = ""
        self.output = Output()

    def feed(self, text: str) -> Output:
        """Take more text; return what is certain now and was not before."""
        self._text += text
        return self._grow(is_partial=True)

    def finish(self) -> Output:
        """Return what was held back: no more text will come."""
        return self._grow(is_partial=False)

    def _grow(self, *, is_partial: bool) -> Output:
        now = read_output(
            self._text,
            self._syntax,
            tools=self._tools,
            is_open=self._is_open,
            is_json=self._is_json and not is_partial,
            is_partial=is_partial,
        )
        if is_partial and self._is_json:
            now = replace(now, content="")  # a fence shows only at the end
        before, self.output = self.output, now
        calls = []
        for i, call in enumerate(now.calls):
            old = before.calls[i] if i < len(before.calls) else None
            if old != call:
                calls.append(
                    replace(call, arguments=_new(old.arguments if old else "", call.arguments))
                )
        return Output(
            _new(before.reasoning, now.reasoning), _new(before.content, now.content), tuple(calls)
        )


def _new(before: str, now: str) -> str:
    """Return what was added to a text; nothing where it became shorter or another."""
    return now[len(before) :] if now.startswith(before) else ""
