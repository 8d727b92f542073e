"""Runs the kernel that takes the longest token at each place."""

import numpy as np

from engine.text.merges import split_ids
from engine.text.strings import StringTable, bytes_address, pack_texts, run


def longest_tokens(
    texts: list[bytes], tokens: StringTable, unk: int, is_words: bool
) -> list[list[int]]:
    """Return the ids of each text; `unk` (or nothing for -1) stands where no token fits.

    `is_words`: a text in which no token fits somewhere is one `unk`.
    """
    text, offsets = pack_texts(texts)
    ids, out_offsets = np.empty(len(text), np.int32), np.empty(len(offsets), np.int64)
    prefix = np.empty(int(np.diff(offsets).max(initial=0)) + 1, np.int64)
    run(
        "longest",
        text=bytes_address(text),
        offsets=offsets.ctypes.data,
        n_texts=len(texts),
        tokens=tokens.address,
        unk=unk,
        is_words=is_words,
        prefix=prefix.ctypes.data,
        ids=ids.ctypes.data,
        out_offsets=out_offsets.ctypes.data,
    )
    return split_ids(ids, out_offsets)
