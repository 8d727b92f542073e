"""Argument words of the text kernels, and the words of the block that describes a string table.

A kernel is `void (args, thread, n_threads)`; `args` is the address of an int64 block whose words
are named here, in order. A table word is the address of a block of TABLE_WORDS.
"""

import numpy as np
from numpy.typing import NDArray

from engine.errors import InternalError

# blob: bytes of all strings; string i is [starts[i], ends[i]) of it. slots: int64[mask + 1], the
# hash table. powers: int64[longest + 1], HASH_BASE to the power of a length.
TABLE_WORDS = ("blob", "starts", "ends", "n_strings", "slots", "mask", "longest", "powers")
BLOB, STARTS, ENDS, N_STRINGS, SLOTS, MASK, LONGEST, POWERS = range(len(TABLE_WORDS))

HASH_BASE = 0x2545F4914F6CDD1D
CUT_BITS = 20  # the set of character pairs that may be joined is a bitmap of 2 ** CUT_BITS bits

# Values of the word `whole` of merge: which words are looked up before any merge.
WHOLE_NEVER, WHOLE_ALWAYS, WHOLE_NEWLINES = range(3)

# Values of `kinds` of pieces, and the value of byte_of_char where a character spells no byte.
PIECE_EMPTY, PIECE_VERBATIM, PIECE_TEXT, PIECE_BYTE = range(4)
NOT_A_BYTE = 0xFFFF

_TEXTS = ("text", "offsets", "n_texts")  # text i is [offsets[i], offsets[i + 1]) of `text`
WORDS: dict[str, tuple[str, ...]] = {
    # Fill the slots of `table`. `is_pairs`: strings are "left right". result int64[2]: first
    # repeated string or -1; 1 if so many strings collide that the table is refused.
    "index": ("table", "is_pairs", "result"),
    # ids int32[n_texts]: index of each text in `table`, or -1.
    "find": ("table", *_TEXTS, "ids"),
    # Set the bit of each pair of adjacent characters that a merge may join.
    "joints": ("table", "is_pairs", "bits"),
    # Replace each byte by the UTF-8 form of spelling[byte] (uint16[256], below 0x800).
    "spell": (*_TEXTS, "spelling", "out", "out_offsets"),
    # The bytes of every string: `kinds` uint8[n_strings]; texts are unescaped (U+2581 to space) or,
    # with byte_of_char uint16[512], un-spelled. pieces: as many bytes as the strings have. starts
    # int64[n_strings + 1]. odd uint8[n_strings] zeros: 1 where a text spells no bytes.
    "pieces": ("table", "kinds", "byte_of_char", "pieces", "starts", "odd"),
    # Byte-pair merges (`merges` is a table of pairs, rank = index) or, with merges 0, joins of
    # neighbours that are a token, by `order` int32[n] (lower first). `byte_ids` int32[256], -1 =
    # drop. `scratch` holds merge_scratch_bytes(capacity). `ids` int32: as many as text bytes;
    # out_offsets int64[n_texts + 1] into it. result int64[1]: 0, or the capacity that is needed.
    "merge": (
        *(*_TEXTS, "tokens", "merges", "order", "joints", "byte_ids", "whole"),
        *("scratch", "capacity", "ids", "out_offsets", "result"),
    ),
    # The longest token at each place, `unk` (-1 = nothing) where there is none; with `is_words` a
    # text with such a place is one unk. prefix int64[longest text + 1]; ids as for merge.
    "longest": (*_TEXTS, "tokens", "unk", "is_words", "prefix", "ids", "out_offsets"),
    # Normalise a text. `kept`: a table of strings left as they are. map uint32[n_nodes]: a double
    # array whose values are offsets of zero-ended replacements. `space` is written for each space.
    # out: 0 = only count. result int64[3]; the third is the length, above `limit` if it grew so.
    "normalize": (
        *("text", "n_bytes", "kept", "map", "n_nodes", "replacements", "n_replacements"),
        *("space", "n_space", "add_prefix", "merge_spaces", "limit", "out", "result"),
    ),
    # Best path. scores f64[n_tokens], NaN = not for matching; unk_score f64. prefix int64, best
    # f64, token_to and begin_of int32: n_bytes + 1 each. ids int32[n_bytes], last token first;
    # result int64[1]: their number.
    "unigram": (
        *("text", "n_bytes", "tokens", "scores", "unk", "unk_score"),
        *("prefix", "best", "token_to", "begin_of", "ids", "result"),
    ),
    # Positions of `text` at which a string of `table` may begin. first uint8[256], second
    # uint8[8192] (a bitmap over two bytes). positions int64 or 0 = only count. result int64[1].
    "candidates": ("text", "n_bytes", "first", "second", "positions", "result"),
    # Non-overlapping strings of `table`, longer lengths first, then left to right. allowed
    # uint8[n_strings]; allowed_plain the same where a byte's `plain` uint8[n_bytes] is 1 (0 = no
    # such byte). strip uint8[n_strings]: 1 left, 2 right. occupied uint8[n_bytes] zeros; prefix
    # int64[n_bytes + 1]. found int64[n_positions, 3]: start, end, index. result int64[1].
    "partition": (
        *("text", "n_bytes", "table", "lengths", "n_lengths", "allowed", "allowed_plain"),
        *("plain", "strip"),
        *("positions", "n_positions", "occupied", "prefix", "found", "result"),
    ),
    # First string with wanted uint8[n] in the iteration order of a libstdc++ unordered_map that
    # received all strings in order. hashes int64[n], links int32[n + 1], buckets int32[largest
    # of sizes]; sizes int64[n_sizes]. result int64[1]: its index or -1.
    "map_order": (
        *("table", "wanted", "sizes", "n_sizes", "hashes", "links", "buckets", "result"),
    ),
}


def pack(kernel: str, **words: int) -> NDArray[np.int64]:
    """Return the argument block of a kernel; a missing or unknown word raises InternalError."""
    names = WORDS[kernel]
    if words.keys() != set(names):
        wrong = ", ".join(sorted(words.keys() ^ set(names)))
        raise InternalError(f"The kernel text/{kernel} was given the wrong words: {wrong}.")
    return np.array([words[name] for name in names], np.int64)


def merge_scratch_bytes(capacity: int) -> int:
    """Return the bytes that `merge` needs for segments of up to `capacity` bytes of text.

    prefix i64 and three int32 columns of capacity + 1, a heap of 2 * capacity i64 keys and i32.
    """
    return (capacity + 1) * (8 + 3 * 4) + 2 * capacity * (8 + 4) + 64
