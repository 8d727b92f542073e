"""Plain NumPy twins of the matmul kernels: transforms, int8 inputs, products."""

import numpy as np


def transformed(name, x, x2=None, norm=None, eps=0.0):
    """Return what a matmul multiplies: f32 [n, n_in]."""
    x = x.astype(np.float64)
    if name == "rms_norm":
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
        return (x if norm is None else x * norm).astype(np.float32)
    if name == "silu":
        return (x / (1 + np.exp(-x)) * x2).astype(np.float32)
    if name == "gelu":
        inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
        return (0.5 * x * (1 + np.tanh(inner)) * x2).astype(np.float32)
    return x.astype(np.float32)


def quantized(x, block):
    """Return x as int8 with one scale per `block` values sees it: f32 of the same shape."""
    rows = x.reshape(-1, block)
    largest = np.abs(rows).max(1, keepdims=True)
    with np.errstate(divide="ignore"):
        inverse = np.where(largest > 0, np.float32(127) / largest, np.float32(0))
    ints = np.rint(rows * inverse)
    return (ints * (largest / np.float32(127))).reshape(x.shape).astype(np.float32)


def product(w, x, bias=None, before=None):
    """Return y [n, n_out] of f32 weights [n_out, n_in], in float64."""
    y = x.astype(np.float64) @ w.astype(np.float64).T
    if bias is not None:
        y = y + bias
    return y if before is None else y + before
