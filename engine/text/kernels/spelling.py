"""Bytes to the characters of a byte-level vocabulary, and stored strings to what they stand for."""

import numpy as np

from engine.native.simd import callee, load_u16, store_i64, store_u8
from engine.text.kernels.strings import byte, word
from engine.text.signatures import (
    BLOB,
    ENDS,
    N_STRINGS,
    NOT_A_BYTE,
    PIECE_BYTE,
    PIECE_EMPTY,
    PIECE_TEXT,
    STARTS,
    WORDS,
)

_TEXT, _OFFSETS, _N_TEXTS, _SPELLING, _OUT, _OUT_OFFSETS = range(len(WORDS["spell"]))
_TABLE, _KINDS, _BYTE_OF_CHAR, _PIECES, _STARTS, _ODD = range(len(WORDS["pieces"]))
ESCAPED_SPACE = 0xE29681  # U+2581 in UTF-8


def spell(args, thread, n_threads):
    """Write each byte as the character that a byte-level vocabulary has for it."""
    out, n_out = word(args, _OUT), np.int64(0)
    store_i64(word(args, _OUT_OFFSETS), n_out)
    for i in range(word(args, _N_TEXTS)):
        for at in range(word(word(args, _OFFSETS), i), word(word(args, _OFFSETS), i + 1)):
            value = byte(word(args, _TEXT) + at)
            code = np.int64(load_u16(word(args, _SPELLING) + 2 * value))
            if code < 0x80:
                store_u8(out + n_out, np.uint8(code))
                n_out += 1
            else:
                store_u8(out + n_out, np.uint8(0xC0 | (code >> 6)))
                store_u8(out + n_out + 1, np.uint8(0x80 | (code & 0x3F)))
                n_out += 2
        store_i64(word(args, _OUT_OFFSETS) + 8 * (i + 1), n_out)


@callee
def _hex_digit(c):
    if c >= 0x30 and c <= 0x39:
        return c - 0x30
    c |= 0x20
    return c - 0x57 if c >= 0x61 and c <= 0x66 else np.int64(-1)


@callee
def _named_byte(text, n):
    """Return the byte of a string <0xHH>, or -1."""
    if n != 6 or (byte(text) << 16) | (byte(text + 1) << 8) | byte(text + 2) != 0x3C3078:
        return np.int64(-1)
    high, low = _hex_digit(byte(text + 3)), _hex_digit(byte(text + 4))
    return high * 16 + low if high >= 0 and low >= 0 else np.int64(-1)


@callee
def _unspell(table, text, n, out):
    """Write the bytes that n bytes of text spell; return how many, or -1 if they spell none."""
    n_out, at = np.int64(0), np.int64(0)
    while at < n:
        code = byte(text + at)
        at += 1
        if code & 0xE0 == 0xC0 and at < n:
            code = ((code & 0x1F) << 6) | (byte(text + at) & 0x3F)
            at += 1
        elif code >= 0x80:
            return np.int64(-1)
        value = np.int64(load_u16(table + 2 * code)) if code < 0x200 else np.int64(NOT_A_BYTE)
        if value == NOT_A_BYTE:
            return np.int64(-1)
        store_u8(out + n_out, np.uint8(value))
        n_out += 1
    return n_out


@callee
def _unescape(text, n, out):
    """Write n bytes of text with a space for every U+2581; return how many."""
    n_out, at = np.int64(0), np.int64(0)
    while at < n:
        value = byte(text + at)
        if value == 0xE2 and at + 2 < n:
            if (value << 16) | (byte(text + at + 1) << 8) | byte(text + at + 2) == ESCAPED_SPACE:
                value = np.int64(0x20)
                at += 2
        store_u8(out + n_out, np.uint8(value))
        n_out += 1
        at += 1
    return n_out


def pieces(args, thread, n_threads):
    """Write the bytes that every token stands for."""
    table, byte_of_char = word(args, _TABLE), word(args, _BYTE_OF_CHAR)
    out, n_out = word(args, _PIECES), np.int64(0)
    for i in range(word(table, N_STRINGS)):
        store_i64(word(args, _STARTS) + 8 * i, n_out)
        start = word(word(table, STARTS), i)
        text, n = word(table, BLOB) + start, word(word(table, ENDS), i) - start
        kind = byte(word(args, _KINDS) + i)
        if kind == PIECE_EMPTY:
            continue
        if kind == PIECE_BYTE:
            value = _named_byte(text, n)
            if value >= 0:
                store_u8(out + n_out, np.uint8(value))
                n_out += 1
        elif kind == PIECE_TEXT:
            n_written = _unescape(text, n, out + n_out)
            if byte_of_char:
                n_written = _unspell(byte_of_char, text, n, out + n_out)
                store_u8(word(args, _ODD) + i, np.uint8(n_written < 0))
            n_out += max(n_written, np.int64(0))
        else:
            for k in range(n):
                store_u8(out + n_out + k, np.uint8(byte(text + k)))
            n_out += n
    store_i64(word(args, _STARTS) + 8 * word(table, N_STRINGS), n_out)
