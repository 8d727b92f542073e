"""The CPU level that kernels are compiled for: name, target CPU, features and object format."""

import platform
import sys
from dataclasses import dataclass

from engine import env
from engine.errors import MachineError, nearest
from engine.native import processor

_AVX2 = (
    *("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt"),
    *("sse3", "sse4.1", "sse4.2", "ssse3"),
)
_X86 = ("x86_64", "amd64")
_ARM = ("aarch64", "arm64")


@dataclass(frozen=True)
class Level:
    """One CPU level: its name, and the target CPU and features given to the code generator."""

    name: str
    cpu: str
    features: frozenset[str]

    @property
    def feature_string(self) -> str:
        """Return the features as the code generator wants them: "+avx,+avx2,…"."""
        return ",".join(f"+{name}" for name in sorted(self.features))


# Levels that can be forced: machines they run on, features they need, target CPU.
LEVELS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "avx512": (_X86, ("avx512f", "avx512bw", "avx512vnni"), ""),
    "avxvnni": (_X86, (*_AVX2, "avxvnni"), "alderlake"),
    "avx2": (_X86, _AVX2, "haswell"),
    "neon": (_ARM, ("neon", "dotprod"), ""),
    "generic": ((), (), ""),
}


def current() -> Level:
    """Return the level to compile for: the forced one (INGLENOOK_CPU_LEVEL) or the host's best.

    Raises MachineError for an unknown level or one that this CPU cannot run.
    """
    forced = env.CPU_LEVEL.read()
    if not forced:
        return host()
    if forced not in LEVELS:
        raise MachineError(f"There is no CPU level “{forced}”.{nearest(forced, LEVELS)}")
    if not _runs(forced):
        raise MachineError(
            f"This CPU cannot run level “{forced}”: "
            f"unset {env.CPU_LEVEL.name} to use “{host().name}”."
        )
    if forced == host().name:
        return host()
    _, needs, cpu = LEVELS[forced]
    return Level(forced, cpu or _baseline(), frozenset(needs) or _baseline_features())


def runnable() -> list[str]:
    """Return the names of all levels that this CPU can run, best first."""
    return [name for name in LEVELS if _runs(name)]


def host() -> Level:
    """Return the best level of this CPU, with the CPU's own name and all its features."""
    best = runnable()[0]
    if best == "generic":
        return Level(best, _baseline(), _baseline_features())
    return Level(best, processor.read().cpu, processor.read().features)


def triple() -> str:
    """Return what the code generator calls this system; its objects are ELF on Windows too."""
    return processor.read().triple + ("-elf" if sys.platform == "win32" else "")


def _runs(name: str) -> bool:
    machines, needs, _ = LEVELS[name]
    here = platform.machine().lower()
    return (not machines or here in machines) and processor.read().features >= set(needs)


def _baseline() -> str:
    return "x86-64" if platform.machine().lower() in _X86 else "generic"


def _baseline_features() -> frozenset[str]:
    return frozenset({"sse2"} if platform.machine().lower() in _X86 else ())
