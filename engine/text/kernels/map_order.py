"""The iteration order of a libstdc++ unordered_map of strings, replayed.

The reference takes the first of several end-of-turn (or fill-in-the-middle) texts in the order of
its hash map. To choose the same one, the map is rebuilt here: its hash, its growth, its links.
"""

import numpy as np

from engine.native.simd import (
    callee,
    load_i32,
    load_u8,
    load_u64,
    store_i32,
    store_i64,
)
from engine.text.kernels.strings import word
from engine.text.signatures import BLOB, ENDS, N_STRINGS, STARTS, WORDS

_TABLE, _WANTED, _SIZES, _N_SIZES, _HASHES, _LINKS, _BUCKETS, _RESULT = range(
    len(WORDS["map_order"])
)
_MULTIPLIER = np.uint64(0xC6A4A7935BD1E995)
_SEED = np.uint64(0xC70F6907)
_EMPTY = -1


@callee
def _murmur(address, n):
    """Return MurmurHash64A of n bytes as libstdc++ computes std::hash of a string."""
    shift = np.uint64(47)
    h = _SEED ^ (np.uint64(n) * _MULTIPLIER)
    whole = n & ~np.int64(7)
    for i in range(0, whole, 8):
        k = load_u64(address + i) * _MULTIPLIER
        h = (h ^ ((k ^ (k >> shift)) * _MULTIPLIER)) * _MULTIPLIER
    if n > whole:
        k = np.uint64(0)
        i = n - 1
        while i >= whole:
            k = (k << np.uint64(8)) | np.uint64(load_u8(address + i))
            i -= 1
        h = (h ^ k) * _MULTIPLIER
    h = (h ^ (h >> shift)) * _MULTIPLIER
    return h ^ (h >> shift)


@callee
def _bucket(hashes, i, n_buckets):
    return np.int64(load_u64(hashes + 8 * i) % np.uint64(n_buckets))


@callee
def _insert(links, buckets, hashes, n_buckets, head, i):
    """Link node i in: behind its bucket's predecessor, or at the front of the list.

    A bucket holds the node before its first one; `head` stands for the list's own beginning.
    """
    bucket = _bucket(hashes, i, n_buckets)
    before = np.int64(load_i32(buckets + 4 * bucket))
    if before != _EMPTY:
        store_i32(links + 4 * i, load_i32(links + 4 * before))
        store_i32(links + 4 * before, np.int32(i))
        return
    first = np.int64(load_i32(links + 4 * head))
    store_i32(links + 4 * i, np.int32(first))
    store_i32(links + 4 * head, np.int32(i))
    if first != _EMPTY:
        store_i32(buckets + 4 * _bucket(hashes, first, n_buckets), np.int32(i))
    store_i32(buckets + 4 * bucket, np.int32(head))


def map_order(args, thread, n_threads):
    """Insert all strings in order, then return the first wanted one of the list."""
    table, hashes = word(args, _TABLE), word(args, _HASHES)
    links, buckets = word(args, _LINKS), word(args, _BUCKETS)
    n = word(table, N_STRINGS)
    head, k, n_buckets = n, np.int64(-1), np.int64(1)
    store_i32(links + 4 * head, np.int32(_EMPTY))
    for i in range(n):
        start = word(word(table, STARTS), i)
        h = _murmur(word(table, BLOB) + start, word(word(table, ENDS), i) - start)
        store_i64(hashes + 8 * i, np.int64(h))
        if k < 0 or i + 1 > n_buckets:  # the load factor is 1: grow, and link every node again
            if k + 1 >= word(args, _N_SIZES):
                break
            k += 1
            n_buckets = word(word(args, _SIZES), k)
            for b in range(n_buckets):
                store_i32(buckets + 4 * b, np.int32(_EMPTY))
            node = np.int64(load_i32(links + 4 * head))
            store_i32(links + 4 * head, np.int32(_EMPTY))
            while node != _EMPTY:
                following = np.int64(load_i32(links + 4 * node))
                _insert(links, buckets, hashes, n_buckets, head, node)
                node = following
        _insert(links, buckets, hashes, n_buckets, head, i)
    node = np.int64(load_i32(links + 4 * head))
    while node != _EMPTY and load_u8(word(args, _WANTED) + node) == 0:
        node = np.int64(load_i32(links + 4 * node))
    store_i64(word(args, _RESULT), node)
