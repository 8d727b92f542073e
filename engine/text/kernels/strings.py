"""Strings of a vocabulary: their hash, the table that finds them, the pairs that may be joined.

A string's hash is the polynomial of its bytes in HASH_BASE, so that the hash of any stretch of a
text follows from two prefix hashes; `mixed` spreads it over the table.
"""

import numpy as np

from engine.native.simd import (
    callee,
    callee_out_of_line,
    load_i64,
    load_u8,
    store_i32,
    store_i64,
    store_u8,
)
from engine.text.signatures import (
    BLOB,
    CUT_BITS,
    ENDS,
    HASH_BASE,
    LONGEST,
    MASK,
    N_STRINGS,
    SLOTS,
    STARTS,
    WORDS,
)

SPACE = 0x20
_TABLE, _IS_PAIRS, _RESULT = range(len(WORDS["index"]))
_BITS = WORDS["joints"].index("bits")
_FIND_TABLE, _TEXT, _OFFSETS, _N_TEXTS, _IDS = range(len(WORDS["find"]))


@callee
def word(block, i):
    return load_i64(block + 8 * i)


@callee
def byte(address):
    return np.int64(load_u8(address))


@callee
def mixed(h):
    """Spread a polynomial hash over all 64 bits."""
    u = np.uint64(h)
    u = (u ^ (u >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    u = (u ^ (u >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64(u ^ (u >> np.uint64(32)))


@callee
def polynomial(address, n):
    h = np.int64(0)
    for i in range(n):
        h = h * HASH_BASE + byte(address + i)
    return h


@callee
def pair_hash(left, right):
    """Return the table hash of a pair from the polynomials of its two sides."""
    return mixed(mixed(left) + right * np.int64(31))


@callee
def same_bytes(a, b, n):
    for i in range(n):
        if load_u8(a + i) != load_u8(b + i):
            return False
    return True


@callee
def n_char_bytes(address, n):
    """Return the bytes of the UTF-8 character at address, of which n bytes are left."""
    lead = byte(address)
    wanted = 1 + (lead >= 0xC0) + (lead >= 0xE0) + (lead >= 0xF0)
    return min(np.int64(wanted), n)


@callee
def packed_char(address, n):
    """Return the n <= 4 bytes of a character as one number."""
    c = np.int64(0)
    for i in range(n):
        c = (c << 8) | byte(address + i)
    return c


@callee
def joint_bit(left, right):
    """Return the bit of a pair of adjacent characters, given as packed_char."""
    u = np.uint64(left) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(right)
    u = (u ^ (u >> np.uint64(31))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64(u >> np.uint64(64 - CUT_BITS))


@callee
def separator(address, n):
    """Return where the first space after the first byte lies, or n."""
    i = np.int64(1)
    while i < n and byte(address + i) != SPACE:
        i += 1
    return min(i, n)


@callee_out_of_line
def find_string(table, address, n, h):
    """Return the index of the n bytes at address, whose table hash is h, or -1."""
    slots, mask, blob = word(table, SLOTS), word(table, MASK), word(table, BLOB)
    slot, tag = h & mask, h >> 32
    while True:
        entry = load_i64(slots + 8 * slot)
        if entry == 0:
            return np.int64(-1)
        if entry >> 32 == tag:
            i = (entry & 0xFFFFFFFF) - 1
            start = word(word(table, STARTS), i)
            if word(word(table, ENDS), i) - start == n and same_bytes(blob + start, address, n):
                return i
        slot = (slot + 1) & mask


@callee_out_of_line
def find_pair(table, address, n_left, n_right, h):
    """Return the index of the pair of adjacent texts at address, or -1."""
    slots, mask, blob = word(table, SLOTS), word(table, MASK), word(table, BLOB)
    slot, tag = h & mask, h >> 32
    while True:
        entry = load_i64(slots + 8 * slot)
        if entry == 0:
            return np.int64(-1)
        if entry >> 32 == tag:
            i = (entry & 0xFFFFFFFF) - 1
            start = word(word(table, STARTS), i)
            pair, n = blob + start, word(word(table, ENDS), i) - start
            if n == n_left + 1 + n_right and byte(pair + n_left) == SPACE:
                right = pair + n_left + 1
                if same_bytes(pair, address, n_left):
                    if same_bytes(right, address + n_left, n_right):
                        return i
        slot = (slot + 1) & mask


def index(args, thread, n_threads):
    """Enter every string into the slots; the first of equal strings stays."""
    table, is_pairs, result = word(args, _TABLE), word(args, _IS_PAIRS), word(args, _RESULT)
    slots, mask, blob = word(table, SLOTS), word(table, MASK), word(table, BLOB)
    n_strings = word(table, N_STRINGS)
    repeated, refused = np.int64(-1), np.int64(0)
    patience = 64 * n_strings + 4096
    for i in range(n_strings):
        start = word(word(table, STARTS), i)
        text, n = blob + start, word(word(table, ENDS), i) - start
        if is_pairs:
            n_left = separator(text, n)
            if n_left >= n - 1:  # no space, or nothing after it: this pair joins nothing
                continue
            right = polynomial(text + n_left + 1, n - n_left - 1)
            h = pair_hash(polynomial(text, n_left), right)
        else:
            h = mixed(polynomial(text, n))
        slot, tag = h & mask, h >> 32
        while True:
            entry = load_i64(slots + 8 * slot)
            if entry == 0:
                store_i64(slots + 8 * slot, (tag << 32) | (i + 1))
                break
            if entry >> 32 == tag:
                other = (entry & 0xFFFFFFFF) - 1
                start = word(word(table, STARTS), other)
                if word(word(table, ENDS), other) - start == n:
                    if same_bytes(blob + start, text, n):
                        if repeated < 0:
                            repeated = i
                        break
            slot = (slot + 1) & mask
            patience -= 1
        if patience < 0:
            refused = np.int64(1)
            break
    store_i64(result, repeated)
    store_i64(result + 8, refused)


def find(args, thread, n_threads):
    """Look up each text."""
    table, text, offsets = word(args, _FIND_TABLE), word(args, _TEXT), word(args, _OFFSETS)
    for i in range(word(args, _N_TEXTS)):
        start = word(offsets, i)
        n = word(offsets, i + 1) - start
        found = np.int64(-1)
        if n <= word(table, LONGEST):
            found = find_string(table, text + start, n, mixed(polynomial(text + start, n)))
        store_i32(word(args, _IDS) + 4 * i, np.int32(found))


@callee
def _allow(bits, left, n_left, right, n_right):
    bit = joint_bit(packed_char(left, n_left), packed_char(right, n_right))
    place = bits + (bit >> 3)
    store_u8(place, np.uint8(byte(place) | (np.int64(1) << (bit & 7))))


def joints(args, thread, n_threads):
    """Mark the pairs inside every string, or the pair at the border of every merge."""
    table, is_pairs, bits = word(args, _TABLE), word(args, _IS_PAIRS), word(args, _BITS)
    for i in range(word(table, N_STRINGS)):
        start = word(word(table, STARTS), i)
        text, n = word(table, BLOB) + start, word(word(table, ENDS), i) - start
        if is_pairs:
            n_left = separator(text, n)
            if n_left >= n - 1:
                continue
            last = n_left - 1
            while last > 0 and n_left - last < 4 and byte(text + last) & 0xC0 == 0x80:
                last -= 1
            right = text + n_left + 1
            _allow(bits, text + last, n_left - last, right, n_char_bytes(right, n - n_left - 1))
        else:
            at = np.int64(0)
            n_at = n_char_bytes(text, n)
            while at + n_at < n:
                following = at + n_at
                n_following = n_char_bytes(text + following, n - following)
                _allow(bits, text + at, n_at, text + following, n_following)
                at, n_at = following, n_following
