"""Special tokens inside a text: where one may begin, and which stretches they take."""

import numpy as np

from engine.native.simd import callee, load_i64, load_u8, store_i64, store_u8
from engine.text.kernels.merge import stretch
from engine.text.kernels.strings import byte, find_string, mixed, word
from engine.text.signatures import HASH_BASE, POWERS, WORDS

_TEXT, _N_BYTES, _FIRST, _SECOND, _C_POSITIONS, _C_RESULT = range(len(WORDS["candidates"]))
_TABLE, _LENGTHS, _N_LENGTHS, _ALLOWED, _ALLOWED_PLAIN, _PLAIN, _STRIP = range(2, 9)
_POSITIONS, _N_POSITIONS, _OCCUPIED, _PREFIX, _FOUND, _RESULT = range(9, len(WORDS["partition"]))
STRIP_LEFT, STRIP_RIGHT = 1, 2


def candidates(args, thread, n_threads):
    """List, or only count, the positions whose first two bytes begin a special token."""
    text, n = word(args, _TEXT), word(args, _N_BYTES)
    first, second, positions = word(args, _FIRST), word(args, _SECOND), word(args, _C_POSITIONS)
    n_found = np.int64(0)
    for i in range(n):
        value = byte(text + i)
        if load_u8(first + value) == 0:
            continue
        if i + 1 < n:
            pair = (value << 8) | byte(text + i + 1)
            if (byte(second + (pair >> 3)) >> (pair & 7)) & 1 == 0:
                continue
        if positions:
            store_i64(positions + 8 * n_found, i)
        n_found += 1
    store_i64(word(args, _C_RESULT), n_found)


@callee
def _is_space(value):
    return value == 0x20 or (value >= 0x09 and value <= 0x0D)


@callee
def _is_free_space(args, at):
    return _is_space(byte(word(args, _TEXT) + at)) and load_u8(word(args, _OCCUPIED) + at) == 0


@callee
def _take(args, start, end, i, n_found):
    """Occupy the stretch of string i and the white space that it strips; write it down."""
    strip = byte(word(args, _STRIP) + i)
    if strip & STRIP_LEFT:
        while start > 0 and _is_free_space(args, start - 1):
            start -= 1
    if strip & STRIP_RIGHT:
        while end < word(args, _N_BYTES) and _is_free_space(args, end):
            end += 1
    for at in range(start, end):
        store_u8(word(args, _OCCUPIED) + at, np.uint8(1))
    row = word(args, _FOUND) + 24 * n_found
    store_i64(row, start)
    store_i64(row + 8, end)
    store_i64(row + 16, i)


@callee
def _is_allowed(args, at, size, i):
    """Tell whether string i counts here: fewer do where a part of the text is plain."""
    plain = word(args, _PLAIN)
    if plain:
        for k in range(at, at + size):
            if load_u8(plain + k):
                return load_u8(word(args, _ALLOWED_PLAIN) + i) != 0
    return load_u8(word(args, _ALLOWED) + i) != 0


def partition(args, thread, n_threads):
    """Find the special tokens of a text, longer ones first."""
    text, n, table = word(args, _TEXT), word(args, _N_BYTES), word(args, _TABLE)
    prefix, occupied, powers = word(args, _PREFIX), word(args, _OCCUPIED), word(table, POWERS)
    h = np.int64(0)
    store_i64(prefix, h)
    for i in range(n):
        h = h * HASH_BASE + byte(text + i)
        store_i64(prefix + 8 * (i + 1), h)
    n_found = np.int64(0)
    for k in range(word(args, _N_LENGTHS)):
        size = word(word(args, _LENGTHS), k)
        for p in range(word(args, _N_POSITIONS)):
            at = load_i64(word(args, _POSITIONS) + 8 * p)
            # What is taken already is no shorter, so it covers one end of what it overlaps.
            if at + size > n or load_u8(occupied + at) or load_u8(occupied + at + size - 1):
                continue
            i = find_string(table, text + at, size, mixed(stretch(prefix, powers, at, size)))
            if i >= 0 and _is_allowed(args, at, size, i):
                _take(args, at, at + size, i, n_found)
                n_found += 1
    store_i64(word(args, _RESULT), n_found)
