"""Harmony, the messages of gpt-oss: each with a channel, and perhaps somebody it is for."""

import re

from engine.chat.output.parts import Call, Output, certain, first

_START, _END = "<|start|>", ("<|end|>", "<|call|>", "<|return|>")
_MARKS = (*_END, _START, "<|channel|>", "<|message|>", "<|constrain|>")
_HEAD = re.compile(
    r"(?:<\|start\|>)?(?P<head>(?:(?!<\|message\|>|<\|end\|>).)*)<\|message\|>", re.S
)
_TO = re.compile(r"to=(?P<to>[\w.-]+)")
_CHANNEL = re.compile(r"<\|channel\|>\s*(?P<channel>\w+)")
_OURS = "functions."


def read_harmony(text: str, is_partial: bool) -> Output | None:
    """Return reasoning (analysis), content (final, and commentary to nobody) and calls.

    `text` begins with <|start|>assistant. Calls to others than functions are left out.
    Returns None where no message has begun.
    """
    reasoning, content, calls = list[str](), list[str](), list[Call]()
    place = 0
    while head := _HEAD.match(text, place):
        place = head.end()
        end = first(text, _END, place)
        body = text[place : end if end >= 0 else len(text)]
        if end < 0 and is_partial:
            body = certain(body, _MARKS)
        channel, to = _CHANNEL.search(head["head"]), _TO.search(head["head"])
        if to is not None:
            if to["to"].startswith(_OURS):
                calls.append(Call(to["to"].removeprefix(_OURS), body))
        elif channel is not None and channel["channel"] == "analysis":
            reasoning.append(body)
        else:
            content.append(body)
        if end < 0:
            break
        place = end + next(len(mark) for mark in _END if text.startswith(mark, end))
    if place == 0:
        return None
    return Output("\n".join(reasoning), "".join(content), tuple(calls))
