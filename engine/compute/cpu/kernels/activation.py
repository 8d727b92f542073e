"""Activations of the feed-forward, alone or gating a second row."""

import numpy as np

from engine.compute.cpu.kernels.rows import load_upto, n_stretches, store_upto, stretch
from engine.compute.cpu.kernels.words import count, indices, word
from engine.compute.cpu.signatures import ACTIVATIONS
from engine.native.simd import callee, fma, splat_f32, vabs, vexp, vmax, vmin, zero_f32x16

ACTIVATE = indices("pointwise/activate")

SILU, GELU, GELU_ERF, GELU_QUICK, RELU, RELU_SQUARED, SWIGLU_OAI = range(len(ACTIVATIONS))


@callee
def f(x):
    """16 copies of a constant."""
    return splat_f32(np.float32(x))


@callee
def sigmoid(v):
    """1 / (1 + exp(-v))."""
    return f(1) / (f(1) + vexp(zero_f32x16() - v))


@callee
def erf(v):
    """Error function by Abramowitz and Stegun 7.1.26, absolute error below 2e-7."""
    x = vabs(v)
    t = f(1) / fma(f(0.3275911), x, f(1))
    p = fma(f(1.061405429), t, f(-1.453152027))
    p = fma(fma(fma(p, t, f(1.421413741)), t, f(-0.284496736)), t, f(0.254829592)) * t
    size = f(1) - p * vexp(zero_f32x16() - x * x)
    return vmin(vmax(v * f(1e30), f(-1)), f(1)) * size


@callee
def silu(v, up):
    return v * sigmoid(v) * up


@callee
def gelu(v, up):
    return v * sigmoid(fma(v * v * v, f(0.044715), v) * f(1.5957691216)) * up


@callee
def gelu_erf(v, up):
    return f(0.5) * v * (f(1) + erf(v * f(0.70710678118))) * up


@callee
def gelu_quick(v, up):
    return v * sigmoid(v * f(1.702)) * up


@callee
def relu(v, up):
    return vmax(v, zero_f32x16()) * up


@callee
def relu_squared(v, up):
    r = vmax(v, zero_f32x16())
    return r * r * up


@callee
def swiglu_oai(v, up):
    g = vmin(v, f(7))
    return g * sigmoid(g * f(1.702)) * (vmin(vmax(up, f(-7)), f(7)) + f(1))


@callee
def activated(kind, v, up):
    """The activation `kind` (an index into ACTIVATIONS) of 16 values."""
    if kind == SILU:
        return silu(v, up)
    if kind == GELU:
        return gelu(v, up)
    if kind == GELU_ERF:
        return gelu_erf(v, up)
    if kind == GELU_QUICK:
        return gelu_quick(v, up)
    if kind == RELU:
        return relu(v, up)
    if kind == RELU_SQUARED:
        return relu_squared(v, up)
    return swiglu_oai(v, up)


def activate(args, thread, n_threads):
    """out = activation(gate) * up."""
    kind, n = word(args, ACTIVATE.activation), word(args, ACTIVATE.n)
    for item in range(thread, n_stretches(count(args, ACTIVATE.n_rows), n), n_threads):
        t, first, end = stretch(item, n)
        gate = word(args, ACTIVATE.gate) + t * word(args, ACTIVATE.ldg)
        up = word(args, ACTIVATE.up) + t * word(args, ACTIVATE.ldu)
        out = word(args, ACTIVATE.out) + t * word(args, ACTIVATE.ldo)
        u = f(1)
        for i in range(first, end, 16):
            if word(args, ACTIVATE.up):
                u = load_upto(up + 4 * i, end - i)
            store_upto(out + 4 * i, activated(kind, load_upto(gate + 4 * i, end - i), u), end - i)
