"""Infill: for filling a gap in a text, prefer to end, else merge tokens that begin alike.

Source: ggerganov, "infill sampler", ggml-org/llama.cpp #9896.
"""

from engine.native.simd import (
    callee,
    callee_out_of_line,
    load_f32,
    load_i32,
    load_i64,
    load_u8,
    store_f32,
    store_i32,
)
from engine.sampling.kernels.candidates import id_at, move, resize, softmax, write_ids
from engine.sampling.kernels.lanes import get, imin, load_index, put
from engine.sampling.kernels.order import order_front, sort
from engine.sampling.words import (
    IDS,
    IS_SORTED,
    LOGITS,
    MARKS,
    N_SORTED,
    PROBS,
    SIZE,
    VALUES,
    A,
    B,
    C,
    D,
    E,
)

INFINITY = float("inf")
N_MERGED = 512  # pairs are compared among this many: the rest cannot reach a fifth together


@callee
def mark_ends(run, step, mark):
    for i in range(get(step, B)):
        store_i32(get(run, MARKS) + 4 * load_index(get(step, A) + 4 * i), mark)


@callee
def is_end(run, i):
    return load_i32(get(run, MARKS) + 4 * id_at(run, i)) != 0


@callee
def is_prefix(step, token, other):
    """Whether the text of `token` is a non-empty beginning of the text of `other`."""
    starts = get(step, E)
    first, second = load_i64(starts + 8 * token), load_i64(starts + 8 * other)
    n = load_i64(starts + 8 * token + 8) - first
    if n == 0 or n > load_i64(starts + 8 * other + 8) - second:
        return False
    text, i = get(step, D), 0
    while i < n and load_u8(text + first + i) == load_u8(text + second + i):
        i += 1
    return i == n


@callee_out_of_line
def merge_prefixes(run, step):
    """Give the p of the less likely of two tokens that begin alike to the more likely."""
    probs, values, n = get(run, PROBS), get(run, VALUES), imin(get(run, SIZE), N_MERGED)
    for i in range(n):
        for j in range(n):
            if load_f32(values + 4 * i) == -INFINITY:
                break
            if i == j or load_f32(values + 4 * j) == -INFINITY:
                continue
            if is_prefix(step, id_at(run, i), id_at(run, j)):
                p, q = load_f32(probs + 4 * i), load_f32(probs + 4 * j)
                winner, loser = (j, i) if q > p else (i, j)
                store_f32(probs + 4 * winner, p + q)
                store_f32(probs + 4 * loser, 0.0)
                store_f32(values + 4 * loser, -INFINITY)


@callee_out_of_line
def keep_likely(run, least):
    """Keep the end tokens and what has p >= least, with p summing to 1; returns the others kept."""
    probs, kept, others, total = get(run, PROBS), 0, 0, 0.0
    for i in range(get(run, SIZE)):
        p, end = load_f32(probs + 4 * i), is_end(run, i)
        if end or p >= least:
            others += 0 if end else 1
            total += p
            move(run, i, kept)
            kept += 1
    resize(run, kept)
    if total > 0.0:
        for i in range(kept):
            store_f32(probs + 4 * i, load_f32(probs + 4 * i) / total)
    return others


@callee
def largest_p(run):
    most = 0.0
    for i in range(get(run, SIZE)):
        p = load_f32(get(run, PROBS) + 4 * i) * 1.0
        if p > most:
            most = p
    return most


@callee
def offer_only(run, token):
    """Make `token` the only candidate."""
    store_i32(get(run, IDS), token)
    store_f32(get(run, VALUES), 1.0)
    store_f32(get(run, PROBS), 1.0)
    resize(run, 1)


def infill(run, step, _):
    """End if an end is likely; else keep the few tokens that stand out after merging.

    Where nothing stands out it ends, unless that is forbidden: then the likeliest stays.
    """
    if softmax(run) == 0.0:
        return
    sort(run)
    write_ids(run)
    order_front(run, N_MERGED)
    mark_ends(run, step, 1)
    p_end, p_other = 0.0, 0.0
    for i in range(get(run, SIZE)):
        p = load_f32(get(run, PROBS) + 4 * i) * 1.0
        if is_end(run, i):
            p_end += p
        else:
            p_other += p
    if 3.0 * p_end * get(run, SIZE) > p_other:
        keep_likely(run, INFINITY)
    else:
        merge_prefixes(run, step)
        fallback, least = get(step, C), 0.2
        may_end = fallback >= 0 and load_f32(get(run, LOGITS) + 4 * fallback) > -INFINITY
        if not may_end and p_end == 0.0:  # all ends are forbidden: something has to stay
            least = largest_p(run)
            if least > 0.2:
                least = 0.2
        others = keep_likely(run, least)
        if others > 0:
            keep_likely(run, 1.0 / (others + 1.0))
        elif may_end:
            offer_only(run, fallback)
    mark_ends(run, step, 0)
    put(run, IS_SORTED, 0)
    put(run, N_SORTED, 0)
