"""What the history does to logits: logit bias, repeat, frequency and presence penalties."""

from engine.native.simd import callee, callee_out_of_line, load_f32, load_i32, store_f32, store_i32
from engine.sampling.kernels.candidates import INFINITY, id_at, put_logit
from engine.sampling.kernels.lanes import get, imin, load_index, number
from engine.sampling.kernels.order import unsort
from engine.sampling.words import (
    IN_ID_ORDER,
    MARKS,
    N_RECENT,
    N_VOCAB,
    RECENT,
    SIZE,
    VALUES,
    A,
    B,
    C,
    D,
)


def logit_bias(run, step, _):
    """l += bias for each listed token; it comes first, so candidate i is token i."""
    ids, biases, values = get(step, A), get(step, B), get(run, VALUES)
    for i in range(get(step, C)):
        at, bias = values + 4 * load_index(ids + 4 * i), load_f32(biases + 4 * i)
        if bias == -INFINITY:
            store_f32(at, bias)
        elif load_f32(at) > -INFINITY:
            put_logit(at, load_f32(at) * 1.0 + bias)


@callee
def count_recent(run, n):
    """Count each of the newest n tokens in MARKS."""
    recent, marks, n_vocab = get(run, RECENT), get(run, MARKS), get(run, N_VOCAB)
    for i in range(1, n + 1):
        token = load_index(recent - 4 * i)
        if 0 <= token < n_vocab:
            store_i32(marks + 4 * token, load_i32(marks + 4 * token) + 1)


@callee_out_of_line
def clear_recent(run, n):
    """Put the marks of the newest n tokens back to 0."""
    recent, marks, n_vocab = get(run, RECENT), get(run, MARKS), get(run, N_VOCAB)
    for i in range(1, n + 1):
        token = load_index(recent - 4 * i)
        if 0 <= token < n_vocab:
            store_i32(marks + 4 * token, 0)


@callee
def penalize(at, count, repeat, frequency, presence):
    """l = l * repeat if l <= 0 else l / repeat; then l -= count * frequency + presence."""
    logit = load_f32(at) * 1.0
    if logit > -INFINITY:
        logit = logit * repeat if logit <= 0.0 else logit / repeat
        put_logit(at, logit - (count * frequency + presence))


def penalties(run, step, _):
    """Penalize each candidate that is among the newest last_n tokens, by how often."""
    n = imin(get(step, A), get(run, N_RECENT))
    if n == 0:
        return
    repeat, frequency, presence = number(step, B), number(step, C), number(step, D)
    unsort(run)
    count_recent(run, n)
    marks, values, recent = get(run, MARKS), get(run, VALUES), get(run, RECENT)
    if get(run, IN_ID_ORDER) != 0:
        for i in range(1, n + 1):
            token = load_index(recent - 4 * i)
            if 0 <= token < get(run, N_VOCAB):
                count = load_index(marks + 4 * token)
                if count > 0:
                    penalize(values + 4 * token, count, repeat, frequency, presence)
                    store_i32(marks + 4 * token, 0)
        return
    for i in range(get(run, SIZE)):
        count = load_index(marks + 4 * id_at(run, i))
        if count > 0:
            penalize(values + 4 * i, count, repeat, frequency, presence)
    clear_recent(run, n)
