"""Vocab: text to ids and back, the pieces of a vocabulary and the ids with a task."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from engine.text.assemble import pieces_of, text_tokenizer
from engine.text.pieces import clean
from engine.text.read import VocabFile, read_vocab
from engine.text.tokenizer import SpecialTokens


class HasMetadata(Protocol):
    """An open GGUF file, or its metadata alone; string arrays are StringArray."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Keys and values of the file."""


class Vocab:
    """A vocabulary; read-only, so any number of threads may use it at once.

    `ids` are the tokens with a task, -1 where there is none; `eog_ids` all that end generation.
    `switches` is what is added to a text, `suppressed` the ids that may never be chosen,
    `attributes` uint8 [n_tokens] the bits of `engine.text.special`. `warnings` are sentences about
    what the file says wrongly and what was done instead. The file may be closed.
    """

    def __init__(self, file: VocabFile) -> None:
        self.model, self.pre = file.model, file.pre
        self.ids, self.eog_ids, self.switches = file.ids, file.eog_ids, file.switches
        self.attributes, self.suppressed = file.attributes, file.suppressed
        self.warnings = file.warnings
        self.n_tokens = len(file.tokens)
        self._before, self._behind = _around(file)
        self._tokens = file.tokens
        self._special = SpecialTokens(file.tokens, file.attributes)
        self._text = text_tokenizer(file)
        self._pieces = pieces_of(file)

    @classmethod
    def from_gguf(cls, gguf: HasMetadata) -> Self:
        """Read the vocabulary of a model.

        Raises ModelFileError for a vocabulary that contradicts itself, its subclass
        UnsupportedModelError for a tokenizer or pre-tokenizer that is not built in.
        """
        return cls(read_vocab(gguf.metadata))

    @property
    def bos(self) -> int:
        """Id of the token that begins a text, or -1."""
        return self.ids.bos

    @property
    def eos(self) -> int:
        """Id of the token that ends a text, or -1."""
        return self.ids.eos

    @property
    def eot(self) -> int:
        """Id of the token that ends a turn, or -1."""
        return self.ids.eot

    def find(self, piece: str | bytes) -> int:
        """Return the id of the token whose stored text this is, or -1."""
        text = piece.encode("utf-8", "replace") if isinstance(piece, str) else piece
        return int(self._tokens.find([text])[0])

    def text(self, token: int) -> bytes:
        """Return the text of a token as stored; raises RequestError outside the vocabulary."""
        self._pieces.require(token)
        return self._tokens[token]

    def tokenize(
        self, text: str, parse_special: bool = True, add_special: bool = True
    ) -> list[int]:
        """Return the ids of `text`.

        `parse_special`: control tokens written in the text count as such; otherwise only
        user-defined ones do. `add_special`: with the beginning and end that the vocabulary adds.
        Halves of surrogate pairs become U+FFFD. Takes time n log n and up to about 50 bytes of
        memory for each byte of text. Raises RequestError above 2 GiB.
        """
        text = _whole_characters(text)
        return self._ids_of(list(self._special.partition(text, parse_special)), add_special)

    def tokenize_parts(
        self, parts: Sequence[tuple[str, bool]], add_special: bool = True
    ) -> list[int]:
        """Return the ids of texts one after the other, as of one text; each with: is it plain?

        Control tokens count as such unless a plain text wrote any of their characters: what a
        person writes never becomes one. Otherwise as `tokenize`.
        """
        texts = [(_whole_characters(text), is_plain) for text, is_plain in parts]
        plain = b"".join(bytes((is_plain,)) * len(text.encode()) for text, is_plain in texts)
        whole = "".join(text for text, _ in texts)
        return self._ids_of(list(self._special.partition(whole, True, plain)), add_special)

    def _ids_of(self, parts: list[str | int], add_special: bool) -> list[int]:
        """Return the ids of stretches of text and special tokens."""
        ids = [*self._before] if add_special else []
        encoded = iter(self._text.encode([part for part in parts if isinstance(part, str)]))
        for part in parts:
            if isinstance(part, str):
                ids += next(encoded)
            else:
                ids.append(part)
        return [*ids, *self._behind] if add_special else ids

    def piece(self, token: int, special: bool = True) -> bytes:
        """Return the bytes of one token; without `special`, control and unknown ones have none.

        Raises RequestError for an id outside the vocabulary.
        """
        return self._pieces.piece(token, special)

    def joined_pieces(self, special: bool = True) -> tuple[bytes, NDArray[np.int64]]:
        """Return what `piece` gives for every token, all in one, and where each begins [n + 1]."""
        return self._pieces.joined(special)

    def detokenize(self, ids: Iterable[int], special: bool = True) -> bytes:
        """Return the bytes of a whole text, as the vocabulary wants it: without the space that
        tokenizing put before it, and with spaces before punctuation cleaned where it says so.

        Raises RequestError for an id outside the vocabulary.
        """
        pieces = [self.piece(token, special) for token in ids]
        if self.switches.add_space_prefix and pieces:
            pieces[0] = pieces[0].removeprefix(b" ")
        whole = b"".join(pieces)
        return clean(whole) if self.switches.clean_spaces else whole


def _whole_characters(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _around(file: VocabFile) -> tuple[list[int], list[int]]:
    """Return the tokens that stand before and behind every text with special tokens."""
    switches, ids = file.switches, file.ids
    if file.family.kind == "wpm":  # whatever the file says
        before, behind = [ids.bos], [ids.sep]
    elif file.family.kind == "rwkv":
        before, behind = [], []
    else:
        before = [ids.bos] if switches.add_bos else []
        behind = [ids.eos] if switches.add_eos else []
    return [token for token in before if token >= 0], [token for token in behind if token >= 0]
