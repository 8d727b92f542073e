"""Temperature, fixed, and dynamic by how uncertain the model is."""

from engine.native.simd import (
    callee_out_of_line,
    load_f32,
    load_f32x16,
    splat_f32,
    store_f32,
    store_f32x16,
)
from engine.sampling.kernels.candidates import first_largest, largest
from engine.sampling.kernels.lanes import get, number, put
from engine.sampling.words import IS_SORTED, N_SORTED, SIZE, VALUES, A

INFINITY = float("inf")
LARGE = 3.0e38


@callee_out_of_line
def heat(run, t):
    """l /= t; with t <= 0, or so small that the best logit would overflow, only the best stays."""
    if not t < LARGE:
        t = LARGE
    n, values, most = get(run, SIZE), get(run, VALUES), largest(run) * 1.0
    if t <= 0.0 or abs(most) > LARGE * t:
        best = first_largest(run)
        logit = load_f32(values + 4 * best)
        for i in range(0, n, 16):
            store_f32x16(values + 4 * i, splat_f32(-INFINITY))
        store_f32(values + 4 * best, logit)
        if get(run, IS_SORTED) != 0:
            put(run, N_SORTED, 1 if best == 0 else 0)
        return
    divisor = splat_f32(t)
    for i in range(0, n, 16):
        store_f32x16(values + 4 * i, load_f32x16(values + 4 * i) / divisor)


def temperature(run, step, _):
    """Divide every logit by t."""
    heat(run, number(step, A))
