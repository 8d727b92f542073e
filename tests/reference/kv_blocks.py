"""Plain NumPy twins of the quantized types of K and V: 32 values to a block of bytes and back."""

import numpy as np

IQ4_VALUES = np.array(
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32
)
BITS = {"q8_0": 8, "q5_0": 5, "q5_1": 5, "q4_0": 4, "q4_1": 4, "iq4_nl": 4}
OFFSETS = {"q8_0": 0, "q5_0": 16, "q4_0": 8}


def _inverse(d):
    return np.divide(np.float32(1), d, out=np.zeros_like(d), where=d != 0)


def quantize(kind, x):
    """Return codes u8[..., 32], d f16[...] and m f16[...] of x f32[..., 32]."""
    x = np.asarray(x, np.float32)
    zero = np.zeros(x.shape[:-1], np.float32)
    largest = np.take_along_axis(x, np.abs(x).argmax(-1)[..., None], -1)[..., 0]
    if kind == "q8_0":
        d = np.abs(largest) / np.float32(127)
        scaled = x * _inverse(d)[..., None]
        codes = np.trunc(scaled + np.copysign(np.float32(0.5), scaled)).astype(np.int8)
        return codes.view(np.uint8), d.astype(np.float16), zero.astype(np.float16)
    if kind == "iq4_nl":
        return _quantize_iq4_nl(x, largest)
    top = np.float32(2 ** BITS[kind] - 1)
    if kind in OFFSETS:
        d, m, up = largest / np.float32(-OFFSETS[kind]), zero, np.float32(OFFSETS[kind] + 0.5)
    else:
        m, up = x.min(-1), np.float32(0.5)
        d = (x.max(-1) - m) / top
    scaled = (x - m[..., None]) * _inverse(d)[..., None] + up
    codes = np.minimum(np.trunc(scaled), top).astype(np.uint8)
    return codes, d.astype(np.float16), m.astype(np.float16)


def _quantize_iq4_nl(x, largest):
    middles = (IQ4_VALUES[1:] + IQ4_VALUES[:-1]) / 2
    scaled = x * _inverse(largest / IQ4_VALUES[0])[..., None]
    codes = (scaled[..., None] >= middles).sum(-1).astype(np.uint8)
    values, weights = IQ4_VALUES[codes].astype(np.float64), x.astype(np.float64) ** 2
    along, square = (weights * values * x).sum(-1), (weights * values**2).sum(-1)
    d = np.divide(along, square, out=np.zeros_like(square), where=square > 0)
    return codes, d.astype(np.float16), np.zeros(d.shape, np.float16)


def dequantize(kind, codes, d, m):
    """Return f32[..., 32]."""
    d, m = d.astype(np.float32)[..., None], m.astype(np.float32)[..., None]
    if kind == "q8_0":
        return codes.view(np.int8) * d
    if kind == "iq4_nl":
        return IQ4_VALUES[codes] * d
    return codes * d + m if kind not in OFFSETS else (codes - np.float32(OFFSETS[kind])) * d


def pack(kind, codes, d, m):
    """Return the bytes of one block as in a model file, from its parts."""
    parts = [d.tobytes()]
    if kind in ("q5_1", "q4_1"):
        parts.append(m.tobytes())
    if BITS[kind] == 5:
        parts.append(np.packbits(codes >> 4 & 1, bitorder="little").tobytes())
    if BITS[kind] == 8:
        parts.append(codes.tobytes())
    else:
        parts.append((codes[:16] & 15 | (codes[16:] & 15) << 4).tobytes())
    return b"".join(parts)
