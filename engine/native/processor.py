"""What LLVM says of this processor, remembered on the disk so that a start need not load LLVM.

What is remembered counts only for the processor that the system describes in the same words.
"""

import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from engine import env

# Lines of /proc/cpuinfo that say which processor it is, and what it may be asked to do.
_CPUINFO = (
    *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),  # x86
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision"),  # ARM
    *("Features", "isa", "uarch"),
)
_N_WINDOWS_FEATURES = 64


@dataclass(frozen=True)
class Processor:
    """The names that LLVM gives to this processor, its features, and this system's triple."""

    cpu: str
    features: frozenset[str]
    triple: str


@functools.cache
def read() -> Processor:
    """Return what LLVM says of this processor, from the disk if it was asked before."""
    identity = _identity()
    found = _remembered(identity) if identity else None
    if found is None:
        found = _ask()
        if identity:
            _remember(identity, found)
    return found


def _ask() -> Processor:
    """Load LLVM and ask it."""
    import llvmlite.binding as llvm

    features = frozenset(name for name, has in llvm.get_host_cpu_features().items() if has)
    return Processor(llvm.get_host_cpu_name(), features, llvm.get_process_triple())


def _identity() -> str:
    """Return a hash that changes with the processor and with LLVM; "" if the system is silent."""
    words = _described()
    if not words:
        return ""
    parts = [platform.machine(), importlib.metadata.version("llvmlite"), *words]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _described() -> list[str]:
    """Return the system's own description of every kind of core it has."""
    if sys.platform == "win32":
        import ctypes

        has = ctypes.windll.kernel32.IsProcessorFeaturePresent
        features = "".join("01"[bool(has(i))] for i in range(_N_WINDOWS_FEATURES))
        return [os.environ.get("PROCESSOR_IDENTIFIER", ""), features]
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return []
    lines = (line.partition(":") for line in text.splitlines())
    return sorted({f"{name.strip()}:{value}" for name, _, value in lines
                   if name.strip() in _CPUINFO})  # fmt: skip


def _path() -> Path:
    return env.cache_dir() / "objects" / "processor.json"


def _remembered(identity: str) -> Processor | None:
    try:
        found = json.loads(_path().read_bytes())
        cpu, features, triple = found["cpu"], found["features"], found["triple"]
        kept = Processor(cpu, frozenset(features), triple)
        is_sound = found["sum"] == _sum(identity, kept)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return kept if is_sound else None


def _remember(identity: str, found: Processor) -> None:
    """Write it down in one step; a folder that cannot be written only costs the next start."""
    kept = {"cpu": found.cpu, "features": sorted(found.features), "triple": found.triple}
    text = json.dumps(kept | {"sum": _sum(identity, found)})
    try:
        _path().parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=_path().parent, delete=False) as file:
            file.write(text)
        Path(file.name).replace(_path())
    except OSError:
        return


def _sum(identity: str, found: Processor) -> str:
    """Return a hash of what is remembered and of the processor that it is about."""
    parts = [identity, found.cpu, found.triple, *sorted(found.features)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
