"""DRY: a penalty that grows with the length of the repetition a token would continue.

Source: p-e-w, "DRY: a modern repetition penalty", oobabooga/text-generation-webui #5677. Tokens
are counted from the newest: tok(0) is the newest, tok(k) the one k places back.
"""

from engine.native.simd import callee, callee_out_of_line, load_f32, load_i64, store_i32
from engine.sampling.kernels.candidates import INFINITY, id_at, put_logit
from engine.sampling.kernels.lanes import get, imin, load_index, number
from engine.sampling.kernels.order import unsort
from engine.sampling.kernels.penalties import clear_recent
from engine.sampling.kernels.scalars import whole_power
from engine.sampling.words import (
    FRONT,
    HEADS,
    IN_ID_ORDER,
    MARKS,
    N_HEADS,
    N_RECENT,
    N_VOCAB,
    RECENT,
    SIZE,
    TAIL_STARTS,
    TAIL_TOKENS,
    TAILS_OF_HEAD,
    VALUES,
    A,
    B,
    C,
    D,
    E,
    F,
)


@callee
def tok(newest, i):
    return load_index(newest - 4 * i)


@callee
def find_head(breakers, token):
    """Index of the breaker head `token`, or -1."""
    heads, low, high = get(breakers, HEADS), 0, get(breakers, N_HEADS)
    while low < high:
        middle = (low + high) >> 1
        if load_index(heads + 4 * middle) < token:
            low = middle + 1
        else:
            high = middle
    if low < get(breakers, N_HEADS) and load_index(heads + 4 * low) == token:
        return low
    return -1


@callee_out_of_line
def longest_tail(breakers, newest, i):
    """Length of the longest tail that followed tok(i) and matches a breaker, or -1 for none."""
    head = find_head(breakers, tok(newest, i))
    longest, tokens = -1, get(breakers, TAIL_TOKENS)
    if head < 0:
        return longest
    first, starts = get(breakers, TAILS_OF_HEAD) + 8 * head, get(breakers, TAIL_STARTS)
    for tail in range(load_i64(first), load_i64(first + 8)):
        start = load_i64(starts + 8 * tail)
        n = load_i64(starts + 8 * tail + 8) - start
        if longest < n <= i:
            j = 0
            while j < n and tok(newest, i - j - 1) == load_index(tokens + 4 * (start + j)):
                j += 1
            if j == n:
                longest = n
    return longest


@callee
def repeat_limit(breakers, newest, n):
    """How far back a repetition may reach: to the newest breaker."""
    for i in range(n):
        tail = longest_tail(breakers, newest, i)
        if tail >= 0:
            return i - tail
    return n


@callee_out_of_line
def find_repeats(newest, n, limit, repeats):
    """repeats[k] = min(limit, common length of tok(0), tok(1), … and tok(k), tok(k+1), …).

    The Z function over the reversed history; a box [left, right] is what is known to match.
    """
    left, right = 0, 0
    for k in range(1, n):
        known = load_index(repeats + 4 * (k - left)) if k <= right else 0
        if k <= right and known < right - k + 1:
            store_i32(repeats + 4 * k, imin(known, limit))
            continue
        end = right + 1 if k <= right else k
        while end < n and tok(newest, end) == tok(newest, end - k):
            end += 1
        store_i32(repeats + 4 * k, imin(end - k, limit))
        if end > k:
            left, right = k, end - 1


@callee
def has_empty_tail(breakers, token):
    """Whether the token alone is a breaker."""
    head = find_head(breakers, token)
    if head < 0:
        return False
    first, starts = get(breakers, TAILS_OF_HEAD) + 8 * head, get(breakers, TAIL_STARTS)
    for tail in range(load_i64(first), load_i64(first + 8)):
        if load_i64(starts + 8 * tail) == load_i64(starts + 8 * tail + 8):
            return True
    return False


@callee_out_of_line
def discourage(run, step, i, token):
    """l -= multiplier * base^(length - allowed) for a candidate that would go on repeating."""
    length = load_index(get(run, MARKS) + 4 * token)
    if length > 0 and not has_empty_tail(get(step, F), token):
        exponent = imin(length - get(step, B), get(step, E))
        at = get(run, VALUES) + 4 * i
        logit = load_f32(at) * 1.0
        if logit > -INFINITY:
            put_logit(at, logit - number(step, C) * whole_power(number(step, D), exponent))


def dry(run, step, _):
    """Penalize the tokens that followed earlier copies of what was just written."""
    n, allowed, newest = imin(get(step, A), get(run, N_RECENT)), get(step, B), get(run, RECENT) - 4
    if n <= allowed:
        return
    limit = repeat_limit(get(step, F), newest, n)
    if limit < allowed:
        return
    unsort(run)
    repeats, marks, n_vocab = get(run, FRONT), get(run, MARKS), get(run, N_VOCAB)
    find_repeats(newest, n, limit, repeats)
    for k in range(1, n):
        length, token = load_index(repeats + 4 * k), tok(newest, k - 1)
        if length >= allowed and 0 <= token < n_vocab:
            if length > load_index(marks + 4 * token):
                store_i32(marks + 4 * token, length)
    if get(run, IN_ID_ORDER) != 0:
        for i in range(n):
            token = tok(newest, i)
            if 0 <= token < n_vocab:
                discourage(run, step, token, token)
                store_i32(marks + 4 * token, 0)
    else:
        for i in range(get(run, SIZE)):
            discourage(run, step, i, id_at(run, i))
        clear_recent(run, n)
