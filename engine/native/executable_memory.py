"""Pages that machine code runs from: written first, then sealed; never writable and executable.

They are never given back once sealed, because threads of the compute team may stand in them until
the process has ended.
"""

import ctypes
import functools
import mmap
import sys
from typing import Any

from engine.errors import MachineError
from engine.native import external

_READ, _WRITE, _EXECUTE = 1, 2, 4  # PROT_*
_PRIVATE, _ANONYMOUS = 2, 0x20  # MAP_*, of Linux
_COMMIT, _RESERVE, _RELEASE = 0x1000, 0x2000, 0x8000  # MEM_*, of Windows
_PAGE_READ, _PAGE_READ_WRITE, _PAGE_READ_EXECUTE = 2, 4, 0x20
_THIS_PROCESS = -1
_IS_WINDOWS = sys.platform == "win32"
_FAILED = ctypes.c_void_p(-1).value
_ADDRESS, _SIZE, _INT, _DWORD = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_uint32
_PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "mmap": (_ADDRESS, _ADDRESS, _SIZE, _INT, _INT, _INT, ctypes.c_int64),
    "munmap": (_INT, _ADDRESS, _SIZE),
    "mprotect": (_INT, _ADDRESS, _SIZE, _INT),
    "__clear_cache": (None, _ADDRESS, _ADDRESS),
    "VirtualAlloc": (_ADDRESS, _ADDRESS, _SIZE, _DWORD, _DWORD),
    "VirtualFree": (_INT, _ADDRESS, _SIZE, _DWORD),
    "VirtualProtect": (_INT, _ADDRESS, _SIZE, _DWORD, ctypes.POINTER(_DWORD)),
    "FlushInstructionCache": (_INT, _ADDRESS, _ADDRESS, _SIZE),
}


def reserve(n_bytes: int) -> int:
    """Return the address of writable pages, all zero; raises MachineError."""
    if _IS_WINDOWS:
        address = _c("VirtualAlloc")(None, n_bytes, _COMMIT | _RESERVE, _PAGE_READ_WRITE)
    else:
        kind = _PRIVATE | _ANONYMOUS
        address = _c("mmap")(None, n_bytes, _READ | _WRITE, kind, -1, 0)
    if address in (None, _FAILED):
        raise MachineError(
            f"There is no memory for {n_bytes:,} bytes of kernels: close other programs, then try "
            "again."
        )
    return address


def seal(address: int, n_code: int, n_constant: int) -> None:
    """Make the first bytes executable and those behind them constant; the rest stays writable.

    Both counts are whole pages. Raises MachineError if the system does not allow it.
    """
    if n_code:
        _protect(address, n_code, _READ | _EXECUTE, _PAGE_READ_EXECUTE)
        _forget_old_code(address, n_code)
    if n_constant:
        _protect(address + n_code, n_constant, _READ, _PAGE_READ)


def release(address: int, n_bytes: int) -> None:
    """Give back pages in which nothing runs."""
    if _IS_WINDOWS:
        _c("VirtualFree")(address, 0, _RELEASE)
    else:
        _c("munmap")(address, n_bytes)


def page_bytes() -> int:
    """Return the bytes of a page."""
    return mmap.PAGESIZE


def _protect(address: int, n_bytes: int, posix: int, windows: int) -> None:
    if _IS_WINDOWS:
        is_done = _c("VirtualProtect")(address, n_bytes, windows, ctypes.byref(_DWORD())) != 0
    else:
        is_done = _c("mprotect")(address, n_bytes, posix) == 0
    if not is_done:
        raise MachineError(
            "This system does not let compiled kernels run: allow this program to make memory "
            "executable."
        )


def _forget_old_code(address: int, n_bytes: int) -> None:
    """Let no core run what its instruction cache still has of these addresses.

    Where there is no call for it, x86 watches itself, and Linux does it with the protection.
    """
    if _IS_WINDOWS:
        _c("FlushInstructionCache")(_THIS_PROCESS, address, n_bytes)
    elif external.address("__clear_cache") is not None:
        _c("__clear_cache")(address, address + n_bytes)


@functools.cache
def _c(name: str) -> Any:
    found = external.function(name, *_PROTOTYPES[name])
    if found is None:
        raise MachineError(f"This system has no “{name}”, without which kernels cannot be loaded.")
    return found
