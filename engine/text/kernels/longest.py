"""Tokenizers that take the longest token at each place: WordPiece words, RWKV bytes."""

import numpy as np

from engine.native.simd import callee, store_i32, store_i64
from engine.text.kernels.merge import stretch
from engine.text.kernels.strings import byte, find_string, mixed, word
from engine.text.signatures import HASH_BASE, LONGEST, POWERS, WORDS

_TEXT, _OFFSETS, _N_TEXTS, _TOKENS, _UNK, _IS_WORDS, _PREFIX, _IDS, _OUT_OFFSETS = range(
    len(WORDS["longest"])
)


@callee
def hash_prefixes(text, n, prefix):
    """Write the polynomial hash of every beginning of n bytes of text, the empty one first."""
    h = np.int64(0)
    store_i64(prefix, h)
    for i in range(n):
        h = h * HASH_BASE + byte(text + i)
        store_i64(prefix + 8 * (i + 1), h)


@callee
def _longest_at(args, text, n, at):
    """Return the token of the longest string at byte `at` of n, and its length; or -1 and 1."""
    tokens, prefix = word(args, _TOKENS), word(args, _PREFIX)
    powers = word(tokens, POWERS)
    size = min(word(tokens, LONGEST), n - at)
    while size > 0:
        h = mixed(stretch(prefix, powers, at, size))
        token = find_string(tokens, text + at, size, h)
        if token >= 0:
            return token, size
        size -= 1
    return np.int64(-1), np.int64(1)


def longest(args, thread, n_threads):
    """Turn every text into tokens; a word with an unknown place is unknown as a whole."""
    ids, unk, n_out = word(args, _IDS), word(args, _UNK), np.int64(0)
    store_i64(word(args, _OUT_OFFSETS), n_out)
    for i in range(word(args, _N_TEXTS)):
        start, first_out = word(word(args, _OFFSETS), i), n_out
        text, n = word(args, _TEXT) + start, word(word(args, _OFFSETS), i + 1) - start
        hash_prefixes(text, n, word(args, _PREFIX))
        at = np.int64(0)
        while at < n:
            token, size = _longest_at(args, text, n, at)
            if token < 0 and word(args, _IS_WORDS):
                n_out, size = first_out, n
            if token < 0:
                token = unk
            if token >= 0:
                store_i32(ids + 4 * n_out, np.int32(token))
                n_out += 1
            at += size
        store_i64(word(args, _OUT_OFFSETS) + 8 * (i + 1), n_out)
