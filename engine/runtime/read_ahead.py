"""Asks the system to bring a model file into memory before the first token needs it."""

import ctypes
import mmap
import sys
from collections.abc import Callable

from engine.gguf import GGUF

_WILL_NEED = 3  # MADV_WILLNEED


def read_ahead(file: GGUF, report: Callable[[float], None]) -> None:
    """Start reading the tensors' bytes; a system that cannot be asked reads them when touched."""
    report(0.0)
    if sys.platform in ("linux", "darwin"):
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        for entry in file.tensors.values():
            start = entry.address // mmap.PAGESIZE * mmap.PAGESIZE
            advise(start, entry.address + entry.n_bytes - start, _WILL_NEED)
    report(1.0)
