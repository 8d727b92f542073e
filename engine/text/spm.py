"""SentencePiece-style merges by score, with byte tokens for what no token covers."""

import numpy as np
from numpy.typing import NDArray

from engine.text.merges import Merger
from engine.text.strings import StringTable, pack_texts

SPACE = "\u2581"  # how these vocabularies write a space
# A symbol that a merge formed is a token by construction, so what is no token at the end is a
# single character: the reference's second look into the recorded merges never finds anything.


class SentencePieces:
    """The tokenizer of the family `llama`."""

    def __init__(
        self,
        tokens: StringTable,
        scores: NDArray[np.float32],
        byte_ids: NDArray[np.int32],
        escape_spaces: bool = True,
        add_space_prefix: bool = True,
    ) -> None:
        self._merger = Merger(tokens, byte_ids, scores=scores)
        self._escape_spaces = escape_spaces
        self._add_space_prefix = add_space_prefix

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Return the ids of each text; before each is a special token, or nothing."""
        if self._add_space_prefix:
            texts = [" " + text for text in texts]
        if self._escape_spaces:
            texts = [text.replace(" ", SPACE) for text in texts]
        return self._merger.merge(*pack_texts([text.encode() for text in texts]))
