"""Where threads may run: the cores of this machine, pinning the calling thread, lowering it."""

import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

_NICE = 5
_BELOW_NORMAL = -1  # THREAD_PRIORITY_BELOW_NORMAL


def cores() -> list[int]:
    """Return the CPUs this process may use, one of each physical core before their siblings.

    Affinity is that of the process's first thread, which is never pinned. Empty where the system
    does not tell.
    """
    if not hasattr(os, "sched_getaffinity"):
        return list(range(os.cpu_count() or 1)) if sys.platform == "win32" else []
    allowed = sorted(os.sched_getaffinity(os.getpid()))
    return sorted(allowed, key=lambda cpu: (_rank_among_siblings(cpu), cpu))


def n_physical() -> int:
    """Return how many physical cores this process may use, at least one."""
    return max(1, sum(1 for cpu in cores() if _rank_among_siblings(cpu) == 0))


def _rank_among_siblings(cpu: int) -> int:
    """Return how many CPUs of lower number share this one's physical core."""
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    try:
        text = path.read_text()
    except OSError:
        return 0
    return sum(1 for sibling in _cpu_list(text) if sibling < cpu)


def _cpu_list(text: str) -> Iterator[int]:
    """Yield the numbers of a list like "0,4-6"."""
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            yield from range(int(first), int(last or first) + 1)


@contextlib.contextmanager
def pinned(cpu: int | None) -> Iterator[None]:
    """Keep the calling thread on one CPU inside the block; do nothing if the system refuses."""
    before = _pin({cpu}) if cpu is not None else None
    try:
        yield
    finally:
        if before is not None:
            _pin(before)


def _pin(cpus: set[int]) -> set[int] | None:
    """Move the calling thread to `cpus`; the CPUs it had, or None if nothing was changed."""
    if sys.platform == "win32":
        mask = sum(1 << cpu for cpu in cpus if cpu < 64)
        kernel32 = ctypes.windll.kernel32
        kernel32.GetCurrentThread.restype = ctypes.c_void_p
        kernel32.SetThreadAffinityMask.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        kernel32.SetThreadAffinityMask.restype = ctypes.c_size_t
        old = kernel32.SetThreadAffinityMask(kernel32.GetCurrentThread(), mask) if mask else 0
        return {cpu for cpu in range(64) if old >> cpu & 1} or None
    if not hasattr(os, "sched_setaffinity"):
        return None
    try:
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cpus)
    except OSError:  # the CPU was taken away meanwhile: run where the system lets us
        return None
    return before


def lower_priority() -> None:
    """Let other threads go first on a shared core, for the rest of the calling thread's life."""
    if sys.platform == "linux":
        own = threading.get_native_id()
        with contextlib.suppress(OSError):  # a policy may forbid it; then we only compete more
            os.setpriority(os.PRIO_PROCESS, own, _NICE)
    elif sys.platform == "win32":
        kernel32 = ctypes.windll.kernel32
        kernel32.GetCurrentThread.restype = ctypes.c_void_p
        kernel32.SetThreadPriority.argtypes = (ctypes.c_void_p, ctypes.c_int)
        kernel32.SetThreadPriority(kernel32.GetCurrentThread(), _BELOW_NORMAL)
