"""Plain NumPy twins of rotary positions and of attention over cells with positions."""

import numpy as np


def rope(x, positions, inv_freq, neox, magnitude=1.0):
    """Rotate the first 2 * len(inv_freq) values of x f32[n, heads, size] by their positions."""
    angle = np.asarray(positions, np.float64)[:, None, None] * inv_freq
    cos, sin = np.cos(angle) * magnitude, np.sin(angle) * magnitude
    n_rot = 2 * len(inv_freq)
    first, second = (slice(0, n_rot // 2), slice(n_rot // 2, n_rot))
    if not neox:
        first, second = slice(0, n_rot, 2), slice(1, n_rot, 2)
    out = x.astype(np.float64)
    a, b = out[..., first].copy(), out[..., second].copy()
    out[..., first], out[..., second] = a * cos - b * sin, a * sin + b * cos
    return out.astype(np.float32)


def hadamard(x, chunk):
    """Return x [..., n] with each piece of `chunk` values multiplied by the orthonormal matrix."""
    matrix = np.ones((1, 1))
    while len(matrix) < chunk:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    pieces = np.reshape(x, (*np.shape(x)[:-1], -1, chunk)) @ (matrix / np.sqrt(chunk))
    return pieces.reshape(np.shape(x)).astype(np.float32)


def attention(q, k, v, q_positions, k_positions, scale, window=0, softcap=0.0, sinks=None):
    """Return f64[rows, heads, size_v] of q [rows, heads, size] over k, v [cells, kv heads, size].

    A row at position p sees cells at positions 0..p, within the window if there is one. Cells that
    no row sees may hold anything. `sinks` [heads] joins the maximum and the denominator only.
    """
    n_rows, n_head, _ = q.shape
    group = n_head // k.shape[1]
    out = np.zeros((n_rows, n_head, v.shape[2]))
    for r, p in enumerate(q_positions):
        seen = (k_positions >= 0) & (k_positions <= p)
        if window:
            seen &= p - k_positions < window
        for h in range(n_head):
            keys, values = (x[seen, h // group].astype(np.float64) for x in (k, v))
            s = keys @ q[r, h].astype(np.float64) * scale
            if softcap:
                s = softcap * np.tanh(s / softcap)
            sink = [] if sinks is None else [float(sinks[h])]
            largest = max([*s, *sink], default=0.0)
            e = np.exp(s - largest)
            total = e.sum() + sum(np.exp(x - largest) for x in sink)
            if total:
                out[r, h] = e @ values / total
    return out
