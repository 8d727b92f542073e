"""Samplers that drop candidates: top-k, top-p, min-p, typical, top-n-sigma, XTC."""

from engine.native.simd import (
    load_f32,
)
from engine.sampling.kernels.candidates import (
    keep_reaching,
    largest,
    n_reaching,
    resize,
    softmax,
)
from engine.sampling.kernels.lanes import get, imax, imin, number
from engine.sampling.kernels.mass import MANY, NEVER, keep_up_to, reach
from engine.sampling.kernels.order import order_more, sort, take_front
from engine.sampling.words import (
    N_SORTED,
    PROBS,
    SIZE,
    VALUES,
    A,
    B,
)

INFINITY = float("inf")


def top_k(run, step, _):
    """Keep the k largest. Source: Fan et al., arXiv:1805.04833."""
    take_front(run, get(step, A))


def top_p(run, step, _):
    """Keep the fewest most probable candidates whose p reach the limit (arXiv:1904.09751)."""
    p, min_keep = number(step, A), get(step, B)
    if softmax(run) == 0.0:
        return
    sort(run)
    total, kept = 0.0, 0
    while kept < get(run, SIZE):
        if kept >= get(run, N_SORTED):
            if kept >= MANY:
                last = reach(run, total, p, min_keep - kept)
                if last != NEVER:
                    keep_up_to(run, last)
                return
            order_more(run)
        total += load_f32(get(run, PROBS) + 4 * kept)
        kept += 1
        if total >= p and kept >= min_keep:
            break
    resize(run, kept)


def min_p(run, step, _):
    """Keep what is at least p times as probable as the best (arXiv:2407.01082)."""
    least, min_keep = largest(run) + number(step, A), imax(get(step, B), 1)
    reaching = n_reaching(run, get(run, VALUES), least)
    if reaching >= min_keep:
        keep_reaching(run, least)
    else:
        take_front(run, imax(reaching, imin(min_keep, get(run, SIZE))))
