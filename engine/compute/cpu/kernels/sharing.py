"""How gemv, multi and experts share weight rows out to threads and input rows to passes."""

from engine.native.simd import callee

PASS_ROWS = 4  # input rows that one pass over the weights serves
SPARE = 1024  # bytes of scratch for a weight row that is shorter than one group


@callee
def rows_per_claim(n_out, n_threads, most):
    """Weight rows that a thread claims at a time: about six claims each."""
    return max(16, min(most, (n_out // (n_threads * 6) + 15) // 16 * 16))


@callee
def spaced(first, step, n):
    """PASS_ROWS addresses `step` apart, the n-th repeated from there on."""
    return (
        first,
        first + min(1, n - 1) * step,
        first + min(2, n - 1) * step,
        first + min(3, n - 1) * step,
    )
