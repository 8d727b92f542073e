"""Merges of neighbouring symbols: byte pairs by rank, and SentencePiece joins by score.

A text is cut where no merge can join the two characters; each segment is merged with a heap of
candidates, in time n log n. Symbols are named by the offset of their first byte.
"""

import numpy as np

from engine.native.simd import (
    callee,
    callee_out_of_line,
    load_i32,
    load_i64,
    store_i32,
    store_i64,
)
from engine.text.kernels.strings import (
    byte,
    find_pair,
    find_string,
    joint_bit,
    mixed,
    n_char_bytes,
    packed_char,
    pair_hash,
    polynomial,
    word,
)
from engine.text.signatures import (
    HASH_BASE,
    LONGEST,
    POWERS,
    WHOLE_ALWAYS,
    WHOLE_NEWLINES,
    WORDS,
)

_TEXT, _OFFSETS, _N_TEXTS, _TOKENS, _MERGES, _ORDER, _JOINTS, _BYTE_IDS, _WHOLE = range(9)
_SCRATCH, _CAPACITY, _IDS, _OUT_OFFSETS, _RESULT = range(9, len(WORDS["merge"]))
NEWLINE = 0x0A


@callee
def i32(base, i):
    return np.int64(load_i32(base + 4 * i))


@callee
def set_i32(base, i, value):
    store_i32(base + 4 * i, np.int32(value))


@callee
def stretch(prefix, powers, start, n):
    """Return the polynomial hash of n bytes from start, given the hashes of all prefixes."""
    return word(prefix, start + n) - word(prefix, start) * word(powers, n)


@callee
def _sink(keys, sizes, n, key, size):
    """Put an entry into the hole at the top of a heap of n entries, the hole counted."""
    hole = np.int64(0)
    while True:
        child = 2 * hole + 1
        if child >= n:
            break
        if child + 1 < n and load_i64(keys + 8 * (child + 1)) < load_i64(keys + 8 * child):
            child += 1
        if load_i64(keys + 8 * child) >= key:
            break
        store_i64(keys + 8 * hole, load_i64(keys + 8 * child))
        set_i32(sizes, hole, i32(sizes, child))
        hole = child
    store_i64(keys + 8 * hole, key)
    set_i32(sizes, hole, size)


@callee
def _rise(keys, sizes, n, key, size):
    """Add an entry to a heap of n entries."""
    hole = n
    while hole > 0:
        parent = (hole - 1) >> 1
        if load_i64(keys + 8 * parent) <= key:
            break
        store_i64(keys + 8 * hole, load_i64(keys + 8 * parent))
        set_i32(sizes, hole, i32(sizes, parent))
        hole = parent
    store_i64(keys + 8 * hole, key)
    set_i32(sizes, hole, size)


@callee_out_of_line
def _offer(args, text, prefix, keys, sizes, n_heap, left, n_left, n_right):
    """Enter two neighbours into the heap if they can be merged; return the heap's size."""
    tokens, merges = word(args, _TOKENS), word(args, _MERGES)
    n = n_left + n_right
    if merges:
        if n >= word(merges, LONGEST):
            return n_heap
        powers = word(merges, POWERS)
        a = stretch(prefix, powers, left, n_left)
        b = stretch(prefix, powers, left + n_left, n_right)
        rank = find_pair(merges, text + left, n_left, n_right, pair_hash(a, b))
        if rank < 0:
            return n_heap
    else:
        if n > word(tokens, LONGEST):
            return n_heap
        h = mixed(stretch(prefix, word(tokens, POWERS), left, n))
        token = find_string(tokens, text + left, n, h)
        if token < 0:
            return n_heap
        rank = i32(word(args, _ORDER), token)
    _rise(keys, sizes, n_heap, (rank << 32) | left, n)
    return n_heap + 1


@callee
def _emit(args, text, n, h, n_out):
    """Write the token of a symbol, or the tokens of its bytes; return the number of ids."""
    ids, tokens = word(args, _IDS), word(args, _TOKENS)
    token = np.int64(-1)
    if n <= word(tokens, LONGEST):
        token = find_string(tokens, text, n, mixed(h))
    if token >= 0:
        set_i32(ids, n_out, token)
        return n_out + 1
    for i in range(n):
        token = i32(word(args, _BYTE_IDS), byte(text + i))
        if token >= 0:
            set_i32(ids, n_out, token)
            n_out += 1
    return n_out


@callee_out_of_line
def _merge_segment(args, text, n, n_out):
    """Merge n bytes of text and write the ids; return the number of ids."""
    capacity = word(args, _CAPACITY)
    prefix = word(args, _SCRATCH)
    keys = prefix + 8 * (capacity + 1)
    sizes = keys + 8 * 2 * capacity
    lengths = sizes + 4 * 2 * capacity
    before, after = lengths + 4 * (capacity + 1), lengths + 8 * (capacity + 1)
    h = np.int64(0)
    store_i64(prefix, h)
    for i in range(n):
        h = h * HASH_BASE + byte(text + i)
        store_i64(prefix + 8 * (i + 1), h)
        set_i32(lengths, i, 0)
    n_heap = np.int64(0)
    left = np.int64(-1)
    at = np.int64(0)
    while at < n:
        size = n_char_bytes(text + at, n - at)
        set_i32(lengths, at, size)
        set_i32(before, at, left)
        set_i32(after, at, at + size)
        if left >= 0:
            n_heap = _offer(args, text, prefix, keys, sizes, n_heap, left, at - left, size)
        left = at
        at += size
    while n_heap > 0:
        left, size = load_i64(keys) & 0xFFFFFFFF, i32(sizes, 0)
        n_heap -= 1
        _sink(keys, sizes, n_heap, load_i64(keys + 8 * n_heap), i32(sizes, n_heap))
        n_left = i32(lengths, left)
        right = i32(after, left)
        if n_left == 0 or right >= n or n_left + i32(lengths, right) != size:
            continue
        set_i32(lengths, left, size)
        set_i32(lengths, right, 0)
        right = left + size
        set_i32(after, left, right)
        earlier = i32(before, left)
        if right < n:
            set_i32(before, right, left)
            n_right = i32(lengths, right)
            n_heap = _offer(args, text, prefix, keys, sizes, n_heap, left, size, n_right)
        if earlier >= 0:
            n_left = i32(lengths, earlier)
            n_heap = _offer(args, text, prefix, keys, sizes, n_heap, earlier, n_left, size)
    powers = word(word(args, _TOKENS), POWERS)
    longest = word(word(args, _TOKENS), LONGEST)
    at = np.int64(0)
    while at < n:
        size = i32(lengths, at)
        h = stretch(prefix, powers, at, size) if size <= longest else np.int64(0)
        n_out = _emit(args, text + at, size, h, n_out)
        at += size
    return n_out


@callee
def _segment_end(args, text, n):
    """Return the length of the first segment of n bytes: up to a pair that nothing joins."""
    bits = word(args, _JOINTS)
    at = n_char_bytes(text, n)
    left = packed_char(text, at)
    while at < n:
        size = n_char_bytes(text + at, n - at)
        right = packed_char(text + at, size)
        bit = joint_bit(left, right)
        if (byte(bits + (bit >> 3)) >> (bit & 7)) & 1 == 0:
            return at
        left = right
        at += size
    return n


@callee
def _whole_token(args, text, n):
    """Return the token that is the whole word, where this vocabulary asks for that, or -1."""
    whole, tokens = word(args, _WHOLE), word(args, _TOKENS)
    if (
        n == 0
        or n > word(tokens, LONGEST)
        or not (whole == WHOLE_ALWAYS or (whole == WHOLE_NEWLINES and byte(text) == NEWLINE))
    ):
        return np.int64(-1)
    if whole == WHOLE_NEWLINES:
        for i in range(n):
            if byte(text + i) != NEWLINE:
                return np.int64(-1)
    return find_string(tokens, text, n, mixed(polynomial(text, n)))


def merge(args, thread, n_threads):
    """Turn every text into token ids; stop and say so when the scratch is too small."""
    n_out, needed = np.int64(0), np.int64(0)
    store_i64(word(args, _OUT_OFFSETS), n_out)
    for i in range(word(args, _N_TEXTS)):
        at, end = word(word(args, _OFFSETS), i), word(word(args, _OFFSETS), i + 1)
        whole = _whole_token(args, word(args, _TEXT) + at, end - at)
        if whole >= 0:
            set_i32(word(args, _IDS), n_out, whole)
            n_out += 1
            at = end
        while at < end:
            text = word(args, _TEXT) + at
            n = _segment_end(args, text, end - at)
            if n > word(args, _CAPACITY) or needed > 0:
                needed = max(needed, n)  # nothing is written from here: only measured
            elif n == n_char_bytes(text, n):
                n_out = _emit(args, text, n, polynomial(text, n), n_out)
            else:
                n_out = _merge_segment(args, text, n, n_out)
            at += n
        store_i64(word(args, _OUT_OFFSETS) + 8 * (i + 1), n_out)
    store_i64(word(args, _RESULT), needed)
