"""What this machine is and how much memory it has: read from the system, shown in one line."""

import os
import sys
from pathlib import Path

from app.strings import megabytes, tr


def device_line(level: str = "") -> str:
    """Return the device that computes, as in "CPU · 8 threads · AVX2"; `level` is its last part."""
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    line = tr("CPU · {n} threads", n=n_cores or 1)
    return f"{line} · {level}" if level else line


def read_level() -> str:
    """Return what the engine's kernels are compiled for; slow the first time, so for a job."""
    import engine

    return engine.cpu_level()


def memory_line() -> str:
    """Return this program's memory against the machine's, as in "3.1 of 15.6 GB", or ""."""
    own, whole = own_memory(), whole_memory()
    if not own or not whole:
        return ""
    return tr("{own} of {all}", own=megabytes(own), all=megabytes(whole))


def own_memory() -> int:
    """Return the bytes this process has in memory, shared files included; 0 if unknown."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def whole_memory() -> int:
    """Return the bytes of memory of this machine; 0 if unknown."""
    if sys.platform == "win32":
        return 0
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return 0
