"""Plain NumPy twins of the row kernels, in float64."""

import math

import numpy as np

_erf = np.vectorize(math.erf)


def rms_norm(x, weight, bias, eps):
    """x / sqrt(mean(x^2) + eps) * weight + bias over the last axis."""
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weight + bias


def layer_norm(x, weight, bias, eps):
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last axis."""
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d**2).mean(-1, keepdims=True) + eps) * weight + bias


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _swiglu_oai(g, u):
    g = np.minimum(g, 7)
    return g * _sigmoid(1.702 * g) * (np.clip(u, -7, 7) + 1)


ACTIVATIONS = {
    "silu": lambda g, u: g * _sigmoid(g) * u,
    "gelu": lambda g, u: 0.5 * g * (1 + np.tanh(0.7978845608 * g * (1 + 0.044715 * g**2))) * u,
    "gelu_erf": lambda g, u: 0.5 * g * (1 + _erf(g / np.sqrt(2))) * u,
    "gelu_quick": lambda g, u: g * _sigmoid(1.702 * g) * u,
    "relu": lambda g, u: np.maximum(g, 0) * u,
    "relu_squared": lambda g, u: np.maximum(g, 0) ** 2 * u,
    "swiglu_oai": _swiglu_oai,
}


def _softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


GATES = {
    "softmax": _softmax,
    "sigmoid": _sigmoid,
    "softmax_selected": lambda x: x,
    "sqrt_softplus": lambda x: np.sqrt(np.log1p(np.exp(x))),
}


def router(logits, n_used, gating, bias=None, normalise=False, scale=1.0, groups=(1, 1)):
    """Return ids int[rows, n_used] and weights f64[rows, n_used], best first, ties to the lower."""
    n_group, n_group_used = groups
    ids, weights = [], []
    for row in logits.astype(np.float64):
        values = GATES[gating](row)
        choice = values if bias is None else values + bias
        if n_group > 1:
            members = choice.reshape(n_group, -1)
            scores = np.sort(members, axis=1)[:, -2:].sum(1)
            kept = np.argsort(-scores, kind="stable")[:n_group_used]
            shut = np.ones(n_group, bool)
            shut[kept] = False
            choice = np.where(np.repeat(shut, members.shape[1]), -np.inf, choice)
        chosen = np.argsort(-choice, kind="stable")[:n_used]
        w = values[chosen]
        if gating == "softmax_selected":
            w = _softmax(w)
        if normalise:
            w = w / max(w.sum(), 6.103515625e-5)
        ids.append(chosen)
        weights.append(w * scale)
    return np.array(ids), np.array(weights)
