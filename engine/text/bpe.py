"""Byte-pair merges: text to words, words to tokens, the words remembered."""

from itertools import chain

import numpy as np
import regex
from numpy.typing import NDArray

from engine.text.merges import Merger
from engine.text.pretokenize import PreTokenizer
from engine.text.signatures import WHOLE_ALWAYS, WHOLE_NEVER, WHOLE_NEWLINES
from engine.text.spm import SPACE
from engine.text.strings import StringTable, bytes_address, pack_texts, run

_MAX_CACHED_CHARS = 1 << 20


def _byte_spelling() -> NDArray[np.uint16]:
    """Return the code point for each byte: itself where it prints, else 256 and upwards."""
    prints = np.zeros(256, bool)
    prints[0x21:0x7F] = prints[0xA1:0xAD] = prints[0xAE:] = True
    spelling = np.arange(256, dtype=np.uint16)
    spelling[~prints] = 256 + np.arange(256 - prints.sum())
    return spelling


BYTE_SPELLING = _byte_spelling()

_NO_SPACES = regex.compile(r"\S+")


def lower(text: str) -> str:
    """Return the text with each character lowered alone: one for one, whatever its neighbours."""
    return "".join([char.lower()[0] for char in text])


class BytePairs:
    """The tokenizer of the families `gpt2` and `gemma4`.

    Words once merged are remembered, at most about a million characters of them; a thread that
    finds the memory full starts an empty one, and threads still in the old one keep it.
    """

    def __init__(
        self,
        tokens: StringTable,
        merges: StringTable,
        pre_tokenizer: PreTokenizer,
        byte_ids: NDArray[np.int32],
        drops_spaces: bool = False,
        lowercase: bool = False,
    ) -> None:
        whole = WHOLE_ALWAYS if pre_tokenizer.ignore_merges else WHOLE_NEVER
        if pre_tokenizer.patterns == "gemma4":
            whole = WHOLE_NEWLINES
        self._merger = Merger(tokens, byte_ids, merges=merges, whole=whole)
        self._pre_tokenizer = pre_tokenizer
        self._drops_spaces, self._lowercase = drops_spaces, lowercase
        self._cache: dict[str, list[int]] = {}
        self._n_cached_chars = 0

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Return the ids of each text."""
        if self._drops_spaces and self._lowercase:
            texts = [lower(text) for text in texts]
        if self._pre_tokenizer.escape_spaces:
            texts = [text.replace(" ", SPACE) for text in texts]
        words = [self._words(text) for text in texts]
        cache = self._cache
        unknown = list(set().union(*words).difference(cache))
        if unknown:
            cache.update(zip(unknown, self._merge(unknown), strict=True))
        ids = [list(chain.from_iterable(map(cache.__getitem__, part))) for part in words]
        self._forget_if_full(cache, unknown)
        return ids

    def _words(self, text: str) -> list[str]:
        split = self._pre_tokenizer.split
        if not self._drops_spaces:
            return split(text)
        return [word for part in _NO_SPACES.findall(text) for word in split(part)]

    def _merge(self, words: list[str]) -> list[list[int]]:
        text, offsets = pack_texts([word.encode() for word in words])
        if self._pre_tokenizer.byte_level:
            text, offsets = _spell(text, offsets)
        return self._merger.merge(text, offsets)

    def _forget_if_full(self, cache: dict[str, list[int]], added: list[str]) -> None:
        self._n_cached_chars += sum(map(len, added)) + 8 * len(added)
        if self._n_cached_chars > _MAX_CACHED_CHARS and self._cache is cache:
            self._cache, self._n_cached_chars = {}, 0


def _spell(text: bytes, offsets: NDArray[np.int64]) -> tuple[bytes, NDArray[np.int64]]:
    """Return the texts with each byte written as its character, and their offsets."""
    out = np.empty(2 * len(text), np.uint8)
    out_offsets = np.empty(len(offsets), np.int64)
    run(
        "spell",
        text=bytes_address(text),
        offsets=offsets.ctypes.data,
        n_texts=len(offsets) - 1,
        spelling=BYTE_SPELLING.ctypes.data,
        out=out.ctypes.data,
        out_offsets=out_offsets.ctypes.data,
    )
    return out[: out_offsets[-1]].tobytes(), out_offsets
