"""Unigram: normalisation by a precompiled character map, and the best path of tokens."""

import numpy as np

from engine.native.simd import (
    callee,
    load_f64,
    load_u32,
    store_f64,
    store_i32,
    store_i64,
    store_u8,
)
from engine.text.kernels.longest import hash_prefixes
from engine.text.kernels.merge import i32, set_i32, stretch
from engine.text.kernels.strings import byte, find_string, mixed, n_char_bytes, polynomial, word
from engine.text.signatures import LONGEST, N_STRINGS, POWERS, WORDS

_TEXT, _N_BYTES, _KEPT, _MAP, _N_NODES, _REPLACEMENTS, _N_REPLACEMENTS = range(7)
_SPACE, _N_SPACE, _ADD_PREFIX, _MERGE, _LIMIT, _OUT, _RESULT = range(7, len(WORDS["normalize"]))
_U_TEXT, _U_N_BYTES, _TOKENS, _SCORES, _UNK, _UNK_SCORE, _PREFIX = range(7)
_BEST, _TOKEN_TO, _BEGIN_OF, _IDS, _U_RESULT = range(7, len(WORDS["unigram"]))
IN_WORD, HAS_PREFIX, N_OUT = range(3)


@callee
def _node(args, i):
    return np.int64(load_u32(word(args, _MAP) + 4 * i))


@callee
def _base(entry):
    return (entry >> 10) << ((entry & 0x200) >> 6)


@callee
def _mapped(args, at):
    """Return the bytes of the longest entry of the map at `at`, and where its replacement is."""
    n_nodes = word(args, _N_NODES)
    size, place = np.int64(0), np.int64(0)
    if n_nodes == 0:
        return size, place
    node = _base(_node(args, 0))
    for i in range(at, word(args, _N_BYTES)):
        c = byte(word(args, _TEXT) + i)
        node ^= c
        if c == 0 or node >= n_nodes:
            break
        entry = _node(args, node)
        if entry & 0x800000FF != c:
            break
        node ^= _base(entry)
        if node >= n_nodes:
            break
        if entry & 0x100:
            size, place = i - at + 1, _node(args, node) & 0x7FFFFFFF
    return size, place


@callee
def _kept(args, at):
    """Return the bytes of the longest user-defined token at `at`, or 0."""
    table, text = word(args, _KEPT), word(args, _TEXT) + at
    if word(table, N_STRINGS) == 0:
        return np.int64(0)
    size = min(word(table, LONGEST), word(args, _N_BYTES) - at)
    while size > 0:
        if find_string(table, text, size, mixed(polynomial(text, size))) >= 0:
            return size
        size -= 1
    return size


@callee
def _put(args, state, address, n):
    """Write n bytes, or only count them."""
    out, n_out = word(args, _OUT), word(state, N_OUT)
    if out:
        for i in range(n):
            store_u8(out + n_out + i, np.uint8(byte(address + i)))
    store_i64(state + 8 * N_OUT, n_out + n)


@callee
def _copy(args, state, address, n):
    """Write n bytes, their spaces as the vocabulary wants them."""
    merges = word(args, _MERGE)
    for i in range(n):
        if byte(address + i) != 0x20:
            if not word(state, IN_WORD):
                store_i64(state + 8 * IN_WORD, np.int64(1))
                if merges or (word(args, _ADD_PREFIX) and not word(state, HAS_PREFIX)):
                    _put(args, state, word(args, _SPACE), word(args, _N_SPACE))
                    store_i64(state + 8 * HAS_PREFIX, np.int64(1))
            _put(args, state, address + i, 1)
        else:
            store_i64(state + 8 * IN_WORD, np.int64(0))
            if not merges:
                _put(args, state, word(args, _SPACE), word(args, _N_SPACE))


def normalize(args, thread, n_threads):
    """Replace what the map replaces and settle the spaces; result 2 is the length."""
    text, n, state = word(args, _TEXT), word(args, _N_BYTES), word(args, _RESULT)
    for i in range(3):
        store_i64(state + 8 * i, np.int64(0))
    at = np.int64(0)
    while at < n and word(state, N_OUT) <= word(args, _LIMIT):
        size = _kept(args, at)
        if size > 0:
            _copy(args, state, text + at, size)
            at += size
            continue
        size, place = _mapped(args, at)
        if size > 0:
            end = place
            last = min(word(args, _N_REPLACEMENTS), place + word(args, _LIMIT) + 1)
            while end < last and byte(word(args, _REPLACEMENTS) + end):
                end += 1
            _copy(args, state, word(args, _REPLACEMENTS) + place, end - place)
        else:
            size = n_char_bytes(text + at, n - at)
            _copy(args, state, text + at, size)
        at += size


@callee
def _offer(args, end, begin, token, score):
    """Let a token compete for the best way to `end`."""
    best = word(args, _BEST)
    if score > load_f64(best + 8 * end):
        store_f64(best + 8 * end, score)
        set_i32(word(args, _TOKEN_TO), end, token)
        set_i32(word(args, _BEGIN_OF), end, begin)


@callee
def _offer_all(args, text, n, at, size):
    """Let every token that begins at `at`, a character of `size` bytes, compete."""
    tokens, prefix, unk = word(args, _TOKENS), word(args, _PREFIX), word(args, _UNK)
    so_far = load_f64(word(args, _BEST) + 8 * at)
    is_covered = False
    for length in range(1, min(word(tokens, LONGEST), n - at) + 1):
        h = mixed(stretch(prefix, word(tokens, POWERS), at, length))
        token = find_string(tokens, text + at, length, h)
        if token < 0:
            continue
        score = load_f64(word(args, _SCORES) + 8 * token)
        if score != score:  # NaN: a token that is not for matching
            continue
        is_covered = is_covered or length == size
        _offer(args, at + length, at, token, so_far + score)
    if not is_covered:
        _offer(args, at + size, at, unk, so_far + load_f64(args + 8 * _UNK_SCORE))


def unigram(args, thread, n_threads):
    """Write the ids of the best path, last one first; unknown ones that meet are one."""
    text, n, unk = word(args, _U_TEXT), word(args, _U_N_BYTES), word(args, _UNK)
    best, ids = word(args, _BEST), word(args, _IDS)
    hash_prefixes(text, n, word(args, _PREFIX))
    for i in range(n + 1):
        store_f64(best + 8 * i, -1e300)
        set_i32(word(args, _BEGIN_OF), i, i - 1)
        set_i32(word(args, _TOKEN_TO), i, unk)
    store_f64(best, 0.0)
    at = np.int64(0)
    while at < n:
        size = n_char_bytes(text + at, n - at)
        _offer_all(args, text, n, at, size)
        at += size
    n_out, was_unknown = np.int64(0), False
    at = n
    while at > 0:
        token = i32(word(args, _TOKEN_TO), at)
        if not (was_unknown and token == unk):
            store_i32(ids + 4 * n_out, np.int32(token))
            n_out += 1
        was_unknown = token == unk
        at = i32(word(args, _BEGIN_OF), at)
    store_i64(word(args, _U_RESULT), n_out)
