"""Samplers that look at the whole distribution: typical, top-n-sigma, XTC, dynamic temperature."""

from engine.native.simd import (
    callee_out_of_line,
    load_f32,
    load_f32x16,
    load_i64,
    select_lt_f32,
    splat_f32,
    store_f32x16,
    sum_f32,
    vabs,
    vmax,
    zero_f32x16,
)
from engine.sampling.kernels.candidates import CHUNK, largest, n_reaching, order_by, resize, softmax
from engine.sampling.kernels.generator import uniform_f32
from engine.sampling.kernels.lanes import get, imin, mask_ge, n_bits, number, put
from engine.sampling.kernels.order import order_front, order_more, sort
from engine.sampling.kernels.scalars import ln, power
from engine.sampling.kernels.temperature import heat
from engine.sampling.words import (
    BUFFERS,
    IDS,
    IS_SORTED,
    KEYS,
    N_SORTED,
    PROBS,
    SIZE,
    VALUES,
    A,
    B,
    C,
    D,
)

INFINITY = float("inf")
SMALLEST_P = 1.2e-38


@callee_out_of_line
def entropy(run, total):
    """-sum p ln p of the softmax in PROBS, whose sum before dividing was `total`."""
    n, values, probs = get(run, SIZE), get(run, VALUES), get(run, PROBS)
    most, least, mean = splat_f32(largest(run)), splat_f32(-100.0), 0.0
    for start in range(0, n, CHUNK):
        part = zero_f32x16()
        for i in range(start, imin(start + CHUNK, n), 16):
            x = vmax(load_f32x16(values + 4 * i) - most, least)
            part = part + load_f32x16(probs + 4 * i) * x
        mean += sum_f32(part)
    return ln(total) - mean


def typical(run, step, _):
    """Keep the candidates whose surprise is closest to the mean one (arXiv:2202.00666)."""
    p, min_keep = number(step, A), get(step, B)
    total = softmax(run)
    if total == 0.0:
        return
    sort(run)
    n, values, keys = get(run, SIZE), get(run, VALUES), load_i64(get(run, BUFFERS) + 24)
    shift = splat_f32(largest(run) + (ln(total) - entropy(run, total)))
    for i in range(0, n, 16):
        distance = vabs(shift - load_f32x16(values + 4 * i))
        store_f32x16(keys + 4 * i, zero_f32x16() - distance)
    order_by(run, keys)
    resize(run, n)
    cumulative, kept = 0.0, 0
    while kept < n:
        if kept >= get(run, N_SORTED):
            order_more(run)
        cumulative += load_f32(get(run, PROBS) + 4 * kept)
        kept += 1
        if cumulative > p and kept >= min_keep:
            break
    order_by(run, values)
    put(run, IS_SORTED, 0)
    resize(run, kept)


def top_n_sigma(run, step, _):
    """Ban logits below max - n * standard deviation (arXiv:2411.07641); nothing is removed."""
    n, values = get(run, SIZE), get(run, VALUES)
    if n <= 1:
        return
    never, zero = splat_f32(-INFINITY), zero_f32x16()
    count, total, squares = 0, 0.0, 0.0
    lowest = splat_f32(-3.4028234663852886e38)
    for start in range(0, n, CHUNK):
        part = zero
        for i in range(start, imin(start + CHUNK, n), 16):
            x = load_f32x16(values + 4 * i)
            part = part + select_lt_f32(never, x, x, zero)
            count += n_bits(mask_ge(x, lowest))
        total += sum_f32(part)
    if count == 0:
        return
    mean = splat_f32(total / count)
    for start in range(0, n, CHUNK):
        part = zero
        for i in range(start, imin(start + CHUNK, n), 16):
            x = load_f32x16(values + 4 * i)
            x = select_lt_f32(never, x, x - mean, zero)
            part = part + x * x
        squares += sum_f32(part)
    least = splat_f32(largest(run) - number(step, A) * (squares / count) ** 0.5)
    for i in range(0, n, 16):
        x = load_f32x16(values + 4 * i)
        store_f32x16(values + 4 * i, select_lt_f32(x, least, never, x))


def xtc(run, step, _):
    """Now and then drop every candidate that reaches a threshold, save the least of them.

    Source: p-e-w, "XTC", oobabooga/text-generation-webui #6335.
    """
    size = get(run, SIZE)
    if size < 2 or uniform_f32(get(step, D)) > number(step, A):
        return
    if softmax(run) == 0.0:
        return
    sort(run)
    threshold = number(step, B)
    if threshold < SMALLEST_P:
        threshold = SMALLEST_P  # a banned token is never an obvious one
    dropped = n_reaching(run, get(run, PROBS), threshold) - 1
    if dropped > 0 and size - dropped >= get(step, C):
        order_front(run, dropped + 1)
        for word in (IDS, VALUES, PROBS, KEYS):
            put(run, word, get(run, word) + 4 * dropped)
        put(run, N_SORTED, get(run, N_SORTED) - dropped)
        put(run, SIZE, size - dropped)


def dynamic_temperature(run, step, _):
    """A temperature between two bounds by the entropy, 0 certain … 1 undecided, to a power."""
    n = get(run, SIZE)
    if n <= 1:
        return
    total = softmax(run)
    if total == 0.0:
        return
    sort(run)
    undecided = max(entropy(run, total), 0.0) / ln(n * 1.0)
    low, high = number(step, A), number(step, B)
    heat(run, low + (high - low) * power(undecided, number(step, C)))
    softmax(run)
    resize(run, n)
