"""Tells what a model thought, between <think> and </think>, from what it says."""

OPEN, CLOSE = "<think>", "</think>"


class ReasoningStream:
    """Takes an answer apart while it grows.

    Attributes:
        has_thought: some text was a thought.
        is_thinking: the thought has not ended yet.
    """

    def __init__(self) -> None:
        self.has_thought = False
        self.is_thinking = False
        self._held = ""  # what may still become a mark
        self._has_begun = False
        self._skips_lines = False

    def feed(self, text: str) -> tuple[str, str]:
        """Take more text; return what is certain of it now, as (thought, said)."""
        if self._has_begun and not self.is_thinking:
            return "", self._said(text)
        self._held += text
        if not self._has_begun:
            start = self._held.lstrip()
            if OPEN.startswith(start):
                return "", ""
            self._has_begun = True
            if not start.startswith(OPEN):
                held, self._held = self._held, ""
                return "", held
            self.has_thought = self.is_thinking = True
            self._held = start[len(OPEN) :].lstrip("\n")
        return self._think()

    def finish(self) -> tuple[str, str]:
        """Return what was held back: no more text will come."""
        held, self._held = self._held, ""
        was_thinking, self.is_thinking = self.is_thinking, False
        return (held, "") if was_thinking else ("", held)

    def _think(self) -> tuple[str, str]:
        end = self._held.find(CLOSE)
        if end >= 0:
            thought, rest = self._held[:end], self._held[end + len(CLOSE) :]
            self.is_thinking, self._held, self._skips_lines = False, "", True
            return thought, self._said(rest)
        begun = [n for n in range(1, len(CLOSE)) if self._held.endswith(CLOSE[:n])]
        cut = len(self._held) - max(begun, default=0)
        thought, self._held = self._held[:cut], self._held[cut:]
        return thought, ""

    def _said(self, text: str) -> str:
        """Return what is said, without the empty lines between it and the thought."""
        if self._skips_lines:
            text = text.lstrip("\n")
            self._skips_lines = not text
        return text


def split_reasoning(text: str) -> tuple[str, str]:
    """Return a whole answer as (thought, said).

    Some templates open the thought themselves: then only its end is in the text.
    """
    stream = ReasoningStream()
    thought, said = stream.feed(text)
    last_thought, last_said = stream.finish()
    thought, said = thought + last_thought, said + last_said
    if not stream.has_thought and CLOSE in said:
        thought, _, said = said.partition(CLOSE)
        said = said.lstrip("\n")
    return thought.strip("\n"), said
