"""MT19937 and the two uniform draws that samplers make from it.

Source: Matsumoto and Nishimura, "Mersenne Twister", ACM TOMACS 8 (1998). A generator is
uint32[625]: 624 words of state and the place of the next output.
"""

from numba import float32

from engine.native.simd import callee, callee_out_of_line, store_i32
from engine.sampling.kernels.lanes import load_index

N, M = 624, 397


@callee_out_of_line
def seed_generator(generator, seed):
    """Start a generator from one 32-bit number."""
    x = seed & 0xFFFFFFFF
    store_i32(generator, x)
    for i in range(1, N):
        x = (1812433253 * (x ^ (x >> 30)) + i) & 0xFFFFFFFF
        store_i32(generator + 4 * i, x)
    store_i32(generator + 4 * N, N)


@callee
def _twist(generator):
    for i in range(N):
        y = load_index(generator + 4 * i) & 0x80000000
        y |= load_index(generator + 4 * ((i + 1) % N)) & 0x7FFFFFFF
        x = load_index(generator + 4 * ((i + M) % N)) ^ (y >> 1)
        if y & 1:
            x ^= 0x9908B0DF
        store_i32(generator + 4 * i, x)


@callee_out_of_line
def next_word(generator):
    """The next 32 random bits."""
    i = load_index(generator + 4 * N)
    if i >= N:
        _twist(generator)
        i = 0
    store_i32(generator + 4 * N, i + 1)
    y = load_index(generator + 4 * i) & 0xFFFFFFFF
    y ^= y >> 11
    y ^= (y << 7) & 0x9D2C5680
    y ^= (y << 15) & 0xEFC60000
    return y ^ (y >> 18)


@callee
def uniform_f64(generator):
    """A number in [0, 1] from two outputs, the first of them the lower half."""
    low = next_word(generator)
    return (low + next_word(generator) * 4294967296.0) / 18446744073709551616.0


@callee
def uniform_f32(generator):
    """A number in [0, 1] from one output, rounded to f32 as its users compare it."""
    return float32(next_word(generator) / 4294967296.0)
