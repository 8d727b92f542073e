"""How gemv, multi and experts share weight rows out to threads and input rows to passes."""

from engine.native.simd import callee

PASS_ROWS = 4  # input rows that one pass over the weights serves
SPARE = 1024  # bytes of scratch for a weight row that is shorter than one group


@callee
def rows_per_claim(n_out, n_threads, most):
    """Weight rows that a thread claims at a time: about six claims each."""
    return max(16, min(most, (n_out // (n_threads * 6) + 15) // 16 * 16))


@callee
def share(n_left, n_threads):
    """Weight rows of the next claim: five eighths of one thread's part of what is left."""
    return max(16, (n_left * 5 // (n_threads * 8) + 15) // 16 * 16)


@callee
def claimed_rows(item, n_out, n_threads):
    """Weight rows [r0, r1) of the item-th claim; r0 is n_out when nothing is left.

    Decision: claims shrink, so a thread reads long stretches and all end together. Of equal claims,
    two each were 5 % faster than six and those 10 % faster than 24 (1.1B Q4_0 and Q4_K_M), because
    the hardware prefetches nothing at the start of a stretch; but with two, a disturbed thread is
    waited for.
    """
    r0 = 0
    for _ in range(item):
        r0 = min(n_out, r0 + share(n_out - r0, n_threads))
    return r0, min(n_out, r0 + share(n_out - r0, n_threads))


@callee
def spaced(first, step, n):
    """PASS_ROWS addresses `step` apart, the n-th repeated from there on."""
    return (
        first,
        first + min(1, n - 1) * step,
        first + min(2, n - 1) * step,
        first + min(3, n - 1) * step,
    )
