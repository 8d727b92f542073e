"""Aligned NumPy buffers and their addresses: what kernels are given to read and write."""

import math
import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike, NDArray

ALIGNMENT = 64


def aligned(shape: int | Sequence[int], dtype: DTypeLike) -> NDArray:
    """Return zeros of `shape` on a 64-byte boundary.

    NumPy alone gives 16, and then every vector access splits a cache line.
    """
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    n_bytes = math.prod(dims) * np.dtype(dtype).itemsize
    raw = np.zeros(n_bytes + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + n_bytes].view(dtype).reshape(dims)


def address(array: NDArray) -> int:
    """Return the address of the first element; the caller keeps the array alive."""
    return array.ctypes.data


def f32_bits(x: float) -> int:
    """Return the bits of float32(x): how an argument block holds a float."""
    return struct.unpack("<i", struct.pack("<f", x))[0]


def f64_bits(x: float) -> int:
    """Return the bits of float64(x) as int64."""
    return struct.unpack("<q", struct.pack("<d", x))[0]
