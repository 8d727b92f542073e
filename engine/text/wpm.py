"""WordPiece: words of a simplified text, each cut into the longest pieces from the left."""

import unicodedata

import regex

from engine.text.bpe import lower
from engine.text.longest import longest_tokens
from engine.text.spm import SPACE
from engine.text.strings import StringTable

_CJK = (
    r"\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f"
    r"\U0002b920-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f"
)
_ALONE = rf"\p{{P}}$+<=>\^`|~{_CJK}"  # characters that are words by themselves
_WORDS = regex.compile(rf"[{_ALONE}]|[^\s{_ALONE}]+")
_SPACES = regex.compile(r"\s")


class WordPieces:
    """The tokenizer of the family `bert`."""

    def __init__(self, tokens: StringTable, unk: int, lowercase: bool, strip_accents: bool) -> None:
        self._tokens, self._unk = tokens, unk
        self._simpler = _Simpler(lowercase, strip_accents)

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Return the ids of each text."""
        words_of = [_WORDS.findall(text.translate(self._simpler)) for text in texts]
        words = [(SPACE + word).encode() for words in words_of for word in words]
        ids = iter(longest_tokens(words, self._tokens, self._unk, is_words=True))
        return [[token for _ in words for token in next(ids)] for words in words_of]


class _Simpler(dict[int, str | None]):
    """What becomes of each character: a table for str.translate that fills itself."""

    def __init__(self, lowercase: bool, strip_accents: bool) -> None:
        self._lowercase, self._strip_accents = lowercase, strip_accents

    def __missing__(self, code: int) -> str | None:
        self[code] = result = self._simpler(chr(code))
        return result

    def _simpler(self, char: str) -> str | None:
        if _SPACES.match(char):
            return " "
        if self._strip_accents:
            char = unicodedata.normalize("NFD", char)[0]
        category = unicodedata.category(char)
        if char == "\ufffd" or category in ("Cc", "Cf", "Co", "Cs"):
            return None
        if self._strip_accents and category.startswith("M"):
            return None
        return lower(char) if self._lowercase else char
