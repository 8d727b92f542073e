"""Random weight matrices in the file's own layout, with the floats that they stand for."""

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize, quantize

# Where the half-precision scales lie in a K superblock; all other bytes may be anything.
_HALVES = {"q4_k": (0, 2), "q5_k": (0, 2), "q6_k": (208,)}


def matrix(name, n_out, n_in, seed=0):
    """Return (uint8 [n_out, row bytes], f32 [n_out, n_in]) of weight type `name`."""
    rng = np.random.default_rng(seed)
    kind = GGMLQuantizationType[name.upper()]
    if name not in _HALVES:
        raw = quantize(rng.standard_normal((n_out, n_in)).astype(np.float32), kind)
        raw = np.ascontiguousarray(raw).view(np.uint8).reshape(n_out, -1)
        return raw, dequantized(name, raw)
    values, n_bytes = GGML_QUANT_SIZES[kind]
    raw = rng.integers(0, 256, (n_out, n_in // values, n_bytes), dtype=np.uint8)
    for at in _HALVES[name]:
        scale = (rng.random((n_out, n_in // values)) * 0.01 + 0.001).astype(np.float16)
        raw[:, :, at : at + 2] = scale.view(np.uint8).reshape(n_out, -1, 2)
    raw = raw.reshape(n_out, -1)
    return raw, dequantized(name, raw)


def dequantized(name, raw):
    """Return the f32 rows of raw uint8 rows."""
    kind = GGMLQuantizationType[name.upper()]
    if name in ("f32", "f16"):
        return raw.view(np.float32 if name == "f32" else np.float16).astype(np.float32)
    return dequantize(raw, kind).astype(np.float32)
