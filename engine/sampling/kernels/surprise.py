"""Selectors that steer how surprising the text is: both mirostats and adaptive-p."""

from engine.native.simd import (
    callee,
    load_f32,
    load_f32x16,
    load_f64,
    load_i64,
    select_lt_f32,
    splat_f32,
    store_f32x16,
    store_f64,
    vabs,
)
from engine.sampling.kernels.candidates import n_reaching, softmax
from engine.sampling.kernels.lanes import get, imax, imin, number
from engine.sampling.kernels.order import order_front, sort, take_front, unsort
from engine.sampling.kernels.scalars import LN2, exp, ln, power
from engine.sampling.kernels.selectors import draw, select
from engine.sampling.words import (
    BUFFERS,
    MU,
    N_VOCAB,
    PICKED_P,
    PROBS,
    SELECTED,
    SIZE,
    TOTAL,
    VALUES,
    WEIGHTED,
    A,
    B,
    C,
    D,
    E,
)

INFINITY = float("inf")


@callee
def draw_unless_alone(run, generator):
    """As `draw`, but a single candidate leaves the generator alone."""
    if get(run, SIZE) > 1:
        draw(run, generator)
    elif softmax(run) > 0.0:
        select(run, 0)


@callee
def learn(run, step):
    """mu -= eta * (surprise of the choice in bits - tau)."""
    i, state = get(run, SELECTED), get(step, E)
    if i >= 0:
        surprise = -ln(load_f32(get(run, PROBS) + 4 * i) * 1.0) / LN2
        mu = load_f64(state + 8 * MU) - number(step, B) * (surprise - number(step, A))
        store_f64(state + 8 * MU, mu)


@callee
def mirostat_k(run, mu, m):
    """How many candidates hold the surprise at mu, from the Zipf exponent of the first m."""
    n, values = get(run, SIZE), get(run, VALUES)
    products, squares = 0.0, 0.0
    for i in range(imin(m, n) - 1):
        here, below = load_f32(values + 4 * i) * 1.0, load_f32(values + 4 * i + 4) * 1.0
        if below == -INFINITY:
            break
        t = ln((i + 2.0) / (i + 1.0))
        products += t * (here - below)
        squares += t * t
    n_vocab = get(run, N_VOCAB)
    if squares == 0.0 or n_vocab < 2:
        return 1
    s = products / squares
    eps, limit = s - 1.0, ln(n_vocab * 1.0)
    if abs(eps) < 1e-6:
        base = exp(mu * LN2) / limit  # the limit of the formula for eps -> 0
    else:
        base = eps * exp(mu * LN2) / (1.0 - exp(-eps * limit))
    if s < 1e-6:
        return n if base >= 1.0 else 1
    k = power(base, 1.0 / s)
    return n if k >= n else imax(int(k), 1)


def mirostat(run, step, _):
    """Hold the surprise near tau by choosing k (arXiv:2007.14966, algorithm 1)."""
    if softmax(run) == 0.0:
        return
    m = get(step, C)
    sort(run)
    order_front(run, m)
    take_front(run, mirostat_k(run, load_f64(get(step, E) + 8 * MU), m))
    draw_unless_alone(run, get(step, D))
    learn(run, step)


def mirostat_v2(run, step, _):
    """Drop what surprises more than mu, then draw (arXiv:2007.14966, algorithm 2)."""
    if softmax(run) == 0.0:
        return
    sort(run)
    least = exp(-load_f64(get(step, E) + 8 * MU) * LN2)
    take_front(run, imax(n_reaching(run, get(run, PROBS), least), 1))
    draw_unless_alone(run, get(step, D))
    learn(run, step)


@callee
def favour(run, aim, original):
    """l = 5 - 10 d^2 / (1 + d), d = |p - aim| / 0.3; keeps the old p in `original`."""
    values, probs = get(run, VALUES), get(run, PROBS)
    centre, never, width = splat_f32(aim), splat_f32(-INFINITY), splat_f32(1.0 / 0.3)
    one, five, ten = splat_f32(1.0), splat_f32(5.0), splat_f32(10.0)
    for i in range(0, get(run, SIZE), 16):
        logit, p = load_f32x16(values + 4 * i), load_f32x16(probs + 4 * i)
        store_f32x16(original + 4 * i, p)
        d = vabs(p - centre) * width
        moved = five - ten * d * d / (one + d)
        store_f32x16(values + 4 * i, select_lt_f32(never, logit, moved, never))


def adaptive_p(run, step, _):
    """Favour candidates whose p brings the mean of the chosen ones to the target.

    Source: MrJackSpade, "adaptive-p", ggml-org/llama.cpp #17927.
    """
    target, generator, state = number(step, A), get(step, D), get(step, E)
    store_f64(state + 8 * PICKED_P, -1.0)
    if target < 0.0:
        draw_unless_alone(run, generator)
        return
    unsort(run)
    if softmax(run) == 0.0:
        return
    total, aim = load_f64(state + 8 * TOTAL), min(target, 1.0)
    if total != 0.0:
        aim = 2.0 * aim - load_f64(state + 8 * WEIGHTED) / total
    original = load_i64(get(run, BUFFERS) + 24)
    favour(run, min(max(aim, 0.0), 1.0), original)
    draw_unless_alone(run, generator)
    if get(run, SELECTED) >= 0:
        store_f64(state + 8 * PICKED_P, load_f32(original + 4 * get(run, SELECTED)) * 1.0)
