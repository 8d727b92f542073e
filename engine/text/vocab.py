"""Vocab: text to ids and back, the pieces of a vocabulary and the ids with a task."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from engine.text.bpe import BytePairs
from engine.text.pieces import Pieces, clean
from engine.text.read import VocabFile, read_vocab
from engine.text.spm import SentencePieces
from engine.text.strings import StringTable
from engine.text.tokenizer import SpecialTokens, TextTokenizer


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
        self._tokens = file.tokens
        self._special = SpecialTokens(file.tokens, file.attributes)
        self._text = _text_tokenizer(file)
        is_bytes = file.family.kind == "bpe" and not file.switches.escape_spaces
        self._pieces = Pieces(file.tokens, file.attributes, is_bytes)

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
        ids = [self.bos] if add_special and self.switches.add_bos and self.bos >= 0 else []
        parts = list(self._special.partition(text, parse_special))
        encoded = iter(self._text.encode([part for part in parts if isinstance(part, str)]))
        for part in parts:
            if isinstance(part, str):
                ids += next(encoded)
            else:
                ids.append(part)
        if add_special and self.switches.add_eos and self.eos >= 0:
            ids.append(self.eos)
        return ids

    def piece(self, token: int, special: bool = True) -> bytes:
        """Return the bytes of one token; without `special`, control and unknown ones have none.

        Raises RequestError for an id outside the vocabulary.
        """
        return self._pieces.piece(token, special)

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


def _text_tokenizer(file: VocabFile) -> TextTokenizer:
    if file.family.kind == "spm":
        return SentencePieces(
            file.tokens,
            file.scores,
            _byte_ids(file.tokens, file.ids.unk),
            file.switches.escape_spaces,
            file.switches.add_space_prefix,
        )
    byte_level = file.pre_tokenizer.byte_level
    return BytePairs(
        file.tokens,
        file.merges,
        file.pre_tokenizer,
        _single_bytes(file.tokens) if byte_level else _byte_ids(file.tokens, file.ids.unk),
        file.family.drops_spaces,
        file.switches.lowercase,
    )


def _single_bytes(tokens: StringTable) -> NDArray[np.int32]:
    """Return the token that is each byte alone, int32 [256]; -1 where there is none."""
    return tokens.find([bytes((value,)) for value in range(256)])


def _byte_ids(tokens: StringTable, unk: int) -> NDArray[np.int32]:
    """Return the token that stands for each byte: <0xHH>, else the byte alone, else unknown."""
    named = tokens.find([f"<0x{value:02X}>".encode() for value in range(256)])
    ids = np.where(named >= 0, named, _single_bytes(tokens))
    return np.where(ids >= 0, ids, unk).astype(np.int32)
