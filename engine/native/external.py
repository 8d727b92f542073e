"""Where the C functions are that compiled kernels call: memset, expf, syscall and their like."""

import ctypes
import functools
import sys
from typing import Any

# Searched in this order; None is everything that the process has loaded for all to see.
_LIBRARIES: dict[str, tuple[str | None, ...]] = {
    "win32": ("ucrtbase", "vcruntime140", "kernel32", "kernelbase", "ntdll"),
    "linux": (None, "libm.so.6", "libgcc_s.so.1"),
}


@functools.cache
def address(name: str) -> int | None:
    """Return the address of a C function of this process, or None if there is no such."""
    for library in _libraries():
        try:
            return ctypes.cast(library[name], ctypes.c_void_p).value
        except AttributeError:
            continue
    return None


def function(name: str, result: Any, *arguments: Any) -> Any:
    """Return a C function with its ctypes; it is called without the GIL. None if there is none."""
    where = address(name)
    return None if where is None else ctypes.CFUNCTYPE(result, *arguments)(where)


@functools.cache
def _libraries() -> list[ctypes.CDLL]:
    found = []
    for name in _LIBRARIES.get(sys.platform, (None,)):
        try:
            found.append(ctypes.CDLL(name))
        except OSError:
            continue
    return found
