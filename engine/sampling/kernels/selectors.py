"""The last step: which candidate it is. Greedy, dist, both mirostats, adaptive-p."""

from engine.native.simd import (
    callee,
    callee_out_of_line,
    load_f32,
)
from engine.sampling.kernels.candidates import (
    CHUNK,
    chunk_sum,
    first_largest,
    id_at,
    largest,
    scale,
    softmax,
    weigh,
)
from engine.sampling.kernels.generator import uniform_f64
from engine.sampling.kernels.lanes import get, imin, put
from engine.sampling.kernels.mass import MANY, NEVER, reach
from engine.sampling.kernels.order import order_more
from engine.sampling.words import (
    HAS_PROBS,
    IS_SORTED,
    N_SORTED,
    NOTHING_ALLOWED,
    PROBS,
    SELECTED,
    SIZE,
    STATUS,
    TOKEN,
    A,
)

INFINITY = float("inf")


@callee
def select(run, i):
    put(run, SELECTED, i)
    put(run, TOKEN, id_at(run, i))


@callee_out_of_line
def walk(run, target):
    """First candidate at which the running f64 sum of PROBS reaches `target`, in array order."""
    running, last, i, n = 0.0, 0, 0, get(run, SIZE)
    while i < n:
        if get(run, IS_SORTED) != 0:
            if i >= get(run, N_SORTED):
                last = reach(run, running, target, 0) if i >= MANY else NEVER
                if last != NEVER:
                    return i + (last & 0xFFFFFFFF)
                order_more(run)
        elif n > CHUNK and i % CHUNK == 0:
            part = chunk_sum(get(run, PROBS) + 4 * i, imin(CHUNK, n - i))
            if running + part < target:
                running += part
                i += CHUNK
                continue
        p = load_f32(get(run, PROBS) + 4 * i) * 1.0
        running += p
        if p > 0.0:
            last = i
            if running >= target:
                break
        i += 1
    return last


@callee_out_of_line
def draw(run, generator):
    """Choose a candidate with its softmax probability, which is left in PROBS."""
    total = weigh(run)
    if total > 0.0:
        i = walk(run, total * uniform_f64(generator))
        scale(run, 1.0 / total)
        select(run, i)


def dist(run, step, _):
    """Draw by probability; also a single candidate uses up its draw."""
    draw(run, get(step, A))


def greedy(run, step, _):
    """The largest logit, the first of equals."""
    if largest(run) == -INFINITY:
        put(run, STATUS, NOTHING_ALLOWED)
        return
    if get(run, HAS_PROBS) == 0:
        softmax(run)
    select(run, first_largest(run))
