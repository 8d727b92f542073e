"""Every environment switch of the engine, typed, in one table.

A switch is read when it is asked for, so a test may set it for one call.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs


@dataclass(frozen=True)
class Switch:
    """One environment variable: its name, what it does, and its value when unset."""

    name: str
    help: str
    default: str = ""

    def read(self) -> str:
        """Return the variable's value, or the default."""
        return os.environ.get(self.name, self.default)


CACHE_DIR = Switch("INGLENOOK_CACHE_DIR", "folder for what can be rebuilt: compiled kernels")
CPU_LEVEL = Switch("INGLENOOK_CPU_LEVEL", "force a CPU level: avx512 avxvnni avx2 generic neon")
N_BUILDERS = Switch("INGLENOOK_BUILDERS", "processes that compile kernels; 0 = one per core", "0")

SWITCHES = (CACHE_DIR, CPU_LEVEL, N_BUILDERS)


def cache_dir() -> Path:
    """Return the folder for rebuildable files; it may not exist yet."""
    return Path(CACHE_DIR.read() or platformdirs.user_cache_dir("inglenook", appauthor=False))
