"""The tokenizer of each family, made from what a file says."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from engine.text.bpe import BytePairs
from engine.text.pieces import Pieces, Spelling
from engine.text.read import VocabFile
from engine.text.rwkv import GreedyBytes, unescaped
from engine.text.spm import SentencePieces
from engine.text.strings import StringTable
from engine.text.tokenizer import TextTokenizer
from engine.text.ugm import CharacterMap, Unigrams
from engine.text.wpm import WordPieces


def text_tokenizer(file: VocabFile) -> TextTokenizer:
    """Return the tokenizer of text without special tokens."""
    return _MAKERS[file.family.kind](file)


def pieces_of(file: VocabFile) -> Pieces:
    """Return the way from ids back to bytes."""
    if file.family.kind == "rwkv":
        return Pieces(unescaped(file.tokens), file.attributes, Spelling.VERBATIM)
    is_bytes = file.family.kind == "bpe" and not file.switches.escape_spaces
    spelling = Spelling.BYTES if is_bytes else Spelling.ESCAPED_SPACES
    return Pieces(file.tokens, file.attributes, spelling)


def _sentence_pieces(file: VocabFile) -> SentencePieces:
    return SentencePieces(
        file.tokens,
        file.scores,
        _byte_ids(file.tokens, file.ids.unk),
        file.switches.escape_spaces,
        file.switches.add_space_prefix,
    )


def _byte_pairs(file: VocabFile) -> BytePairs:
    is_bytes = file.pre_tokenizer.byte_level
    return BytePairs(
        file.tokens,
        file.merges,
        file.pre_tokenizer,
        _single_bytes(file.tokens) if is_bytes else _byte_ids(file.tokens, file.ids.unk),
        file.family.drops_spaces,
        file.switches.lowercase,
    )


def _word_pieces(file: VocabFile) -> WordPieces:
    switches = file.switches
    return WordPieces(file.tokens, file.ids.unk, switches.lowercase, switches.strip_accents)


def _unigrams(file: VocabFile) -> Unigrams:
    return Unigrams(
        file.tokens,
        file.scores,
        file.attributes,
        file.ids.unk,
        CharacterMap(file.character_map),
        add_space_prefix=file.switches.add_space_prefix,
        merge_spaces=file.switches.merge_spaces,
        escape_spaces=file.switches.escape_spaces,
    )


def _greedy_bytes(file: VocabFile) -> GreedyBytes:
    return GreedyBytes(unescaped(file.tokens), file.ids.unk)


_MAKERS: dict[str, Callable[[VocabFile], TextTokenizer]] = {
    "bpe": _byte_pairs,
    "rwkv": _greedy_bytes,
    "spm": _sentence_pieces,
    "ugm": _unigrams,
    "wpm": _word_pieces,
}


def _single_bytes(tokens: StringTable) -> NDArray[np.int32]:
    """Return the token that is each byte alone, int32 [256]; -1 where there is none."""
    return tokens.find([bytes((value,)) for value in range(256)])


def _byte_ids(tokens: StringTable, unk: int) -> NDArray[np.int32]:
    """Return the token that stands for each byte: <0xHH>, else the byte alone, else unknown."""
    named = tokens.find([f"<0x{value:02X}>".encode() for value in range(256)])
    ids = np.where(named >= 0, named, _single_bytes(tokens))
    return np.where(ids >= 0, ids, unk).astype(np.int32)
