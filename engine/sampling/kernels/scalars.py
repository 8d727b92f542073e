"""ln, exp and powers of one f64, without the C library: the same bits on every system."""

from engine.native.simd import callee, callee_out_of_line
from engine.sampling.kernels.lanes import bits_of, from_bits

LN2 = 0.6931471805599453
LN2_HIGH, LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
INFINITY = float("inf")


@callee_out_of_line
def ln(x):
    """Natural logarithm of x > 0; 0 gives -inf."""
    if x <= 0.0:
        return -INFINITY
    if x == INFINITY:
        return INFINITY
    shift = 0
    if x < 2.2250738585072014e-308:
        x, shift = x * 18014398509481984.0, 54
    bits = bits_of(x)
    exponent = (bits >> 52) - 1023 - shift
    m = from_bits((bits & 0xFFFFFFFFFFFFF) | (1023 << 52))
    if m > 1.4142135623730951:
        m, exponent = m * 0.5, exponent + 1
    f = (m - 1.0) / (m + 1.0)
    square, term, total = f * f, f, 0.0
    for k in range(1, 24, 2):
        total += term / k
        term *= square
    return exponent * LN2_HIGH + (2.0 * total + exponent * LN2_LOW)


@callee_out_of_line
def exp(x):
    """e to the x; saturates at 0 and +inf."""
    if x > 709.7:
        return INFINITY
    if x < -708.0:
        return 0.0
    n = int(x / LN2 + (0.5 if x >= 0.0 else -0.5))
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    total, term = 1.0, 1.0
    for k in range(1, 15):
        term *= r / k
        total += term
    return total * from_bits((n + 1023) << 52)


@callee
def power(base, exponent):
    """base ** exponent for base >= 0."""
    if exponent == 0.0:
        return 1.0
    return exp(exponent * ln(base))


@callee
def whole_power(base, exponent):
    """base ** exponent for a whole exponent >= 0, by squaring."""
    result = 1.0
    while exponent > 0:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result
