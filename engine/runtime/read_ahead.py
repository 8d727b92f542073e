"""Asks the system to bring a model file into memory before the first token needs it."""

import ctypes
import mmap
import sys
from collections.abc import Callable, Iterator

from engine.gguf import GGUF

_WILL_NEED = 3  # MADV_WILLNEED


def read_ahead(file: GGUF, report: Callable[[float], None]) -> None:
    """Start reading the tensors' bytes; a system that cannot be asked reads them when touched.

    Tensors that lie side by side are asked for in one: the system then reads them into larger
    pages, out of which they are decoded faster.
    """
    report(0.0)
    if sys.platform in ("linux", "darwin"):
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        spans = ((entry.address, entry.address + entry.n_bytes) for entry in file.tensors.values())
        for start, end in joined(sorted(spans)):
            advise(start, end - start, _WILL_NEED)
    report(1.0)


def joined(spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield spans of addresses from the start of a page, neighbours as one; `spans` are sorted."""
    first = end = 0
    for start, stop in spans:
        page = start // mmap.PAGESIZE * mmap.PAGESIZE
        if page > end:
            if end:
                yield first, end
            first = page
        end = max(end, stop)
    if end:
        yield first, end
