"""How much memory this process holds, also what no Python allocator knows of; Linux only."""

import re
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest


def _status(key):
    if not sys.platform.startswith("linux"):
        pytest.skip("the memory of a process is read from /proc")
    return 1024 * int(re.search(rf"{key}:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])


def resident():
    """Return the bytes that are in memory now."""
    return _status("VmRSS")


@contextmanager
def growth():
    """Yield a list that afterwards holds by how many bytes the process was larger at its peak."""
    before, found = resident(), []
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    except OSError:
        pytest.skip("this system does not let the peak of memory begin anew")
    yield found
    found.append(_status("VmHWM") - before)
