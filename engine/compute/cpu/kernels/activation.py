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


def _gated(op):
    """Make gated(gate, up, n, out): out = op(gate, up or 1) over n floats."""

    @callee
    def gated(gate, up, n, out):
        u = f(1)
        for i in range(0, n, 16):
            if up:
                u = load_upto(up + 4 * i, n - i)
            store_upto(out + 4 * i, op(load_upto(gate + 4 * i, n - i), u), n - i)

    return gated


gated_silu, gated_gelu, gated_erf = _gated(silu), _gated(gelu), _gated(gelu_erf)
gated_quick, gated_relu, gated_squared = _gated(gelu_quick), _gated(relu), _gated(relu_squared)
gated_oai = _gated(swiglu_oai)


@callee
def activate_stretch(kind, gate, up, n, out):
    """Apply the activation `kind` (an index into ACTIVATIONS) to n floats."""
    if kind == SILU:
        gated_silu(gate, up, n, out)
    elif kind == GELU:
        gated_gelu(gate, up, n, out)
    elif kind == GELU_ERF:
        gated_erf(gate, up, n, out)
    elif kind == GELU_QUICK:
        gated_quick(gate, up, n, out)
    elif kind == RELU:
        gated_relu(gate, up, n, out)
    elif kind == RELU_SQUARED:
        gated_squared(gate, up, n, out)
    else:
        gated_oai(gate, up, n, out)


def activate(args, thread, n_threads):
    """out = activation(gate) * up."""
    n, up = word(args, ACTIVATE.n), word(args, ACTIVATE.up)
    for item in range(thread, n_stretches(count(args, ACTIVATE.n_rows), n), n_threads):
        t, first, end = stretch(item, n)
        activate_stretch(
            word(args, ACTIVATE.activation),
            word(args, ACTIVATE.gate) + t * word(args, ACTIVATE.ldg) + 4 * first,
            up + t * word(args, ACTIVATE.ldu) + 4 * first if up else 0,
            end - first,
            word(args, ACTIVATE.out) + t * word(args, ACTIVATE.ldo) + 4 * first,
        )
