"""One token to text: whole characters, stop words across tokens, the indent rule, held-back text.

What is handed out is certain: text that may still turn into a stop word or is half a character is
held back, and `finish` hands out what is left. The handed-out texts, joined, are `text`.

Decision: only the longest ending that a stop word begins with is held back, not the whole unsent
text, so that words flow while a stop word is possible. An unfinished character at the very end is
dropped: it never was text.
"""

import codecs
from collections.abc import Sequence


class TextEmitter:
    """The text side of one answer."""

    def __init__(self, stop_words: Sequence[str] = (), n_indent: int = 0) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._stop_words = tuple(stop_words)
        self._n_indent = n_indent
        self._line_indent = -1  # blanks since the last newline, -1 = past the first other character
        self._held = ""
        self._parts: list[str] = []
        self.stop_word = ""
        self.is_cut = False  # by a stop word or by the indent rule: no more text may follow

    @property
    def text(self) -> str:
        """Return everything handed out so far."""
        return "".join(self._parts)

    @property
    def held(self) -> str:
        """Return the whole characters that are held back."""
        return self._held

    def use_stop_words(self, stop_words: Sequence[str]) -> None:
        """Look for other stop words from the next token on."""
        self._stop_words = tuple(stop_words)

    def feed(self, piece: bytes) -> str:
        """Take the bytes of one token; return the text that is certain now, possibly empty."""
        if self.is_cut:
            return ""
        arrived = self._decode(piece)
        if not arrived:
            return ""
        n_old = len(self._held)
        unsent = self._held + arrived
        end = self._end_of_text(unsent, n_old)
        if end is None:
            end = len(unsent) - self._n_to_hold(unsent)
            self._held = unsent[end:]
        else:
            self.is_cut = True
            self._held = ""
        return self._hand_out(unsent[:end])

    def finish(self) -> str:
        """Return the held-back text: nothing can follow that would make it a stop word."""
        held, self._held = self._held, ""
        return self._hand_out(held)

    def _hand_out(self, text: str) -> str:
        if text:
            self._parts.append(text)
        return text

    def _end_of_text(self, unsent: str, n_old: int) -> int | None:
        """Return where a stop word or a wrong indent ends the text, or None."""
        end, self.stop_word = None, ""
        for word in self._stop_words:
            at = unsent.find(word)
            if at >= 0 and (end is None or at < end):
                end, self.stop_word = at, word
        if self._n_indent:
            cut = self._wrong_indent(unsent, n_old)
            if cut is not None and (end is None or cut < end):
                end, self.stop_word = cut, ""
        return end

    def _wrong_indent(self, unsent: str, start: int) -> int | None:
        """Return where a line begins its text with fewer than `n_indent` blanks, or None."""
        for i in range(start, len(unsent)):
            char = unsent[i]
            if self._line_indent >= 0:
                if char in " \t":
                    self._line_indent += 1
                    continue
                if self._line_indent < self._n_indent:
                    return i
            self._line_indent = 0 if char == "\n" else -1
        return None

    def _n_to_hold(self, unsent: str) -> int:
        """Return the length of the longest ending that some stop word begins with."""
        longest = 0
        for word in self._stop_words:
            for n in range(min(len(word) - 1, len(unsent)), longest, -1):
                if unsent.endswith(word[:n]):
                    longest = n
                    break
        return longest
