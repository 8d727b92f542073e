"""Object files of compiled units: naming, checking, building what is missing, loading.

A file is one JSON line (what it is, what it was compiled from, its checksum) and then the object.
It is used only if compiler versions, CPU level, sources, checksum and symbols all fit; otherwise
the unit is compiled again in a child process. Loading needs neither Numba nor LLVM.
"""

import ctypes
import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from numpy.typing import NDArray

from engine import env
from engine.errors import InternalError, MachineError, nearest
from engine.native import level, linker, sources, units
from engine.native.elf import DamagedObject

FORMAT = 1
MAX_HEADER_BYTES = 1 << 20
MAX_BUILDS = 3  # a source may be edited while it is being compiled
Progress = Callable[[str, float], None]
_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


@dataclass(frozen=True)
class Header:
    """The first line of an object file."""

    unit: str
    toolchain: str
    kernels: list[str]
    sources: dict[str, str]
    sha256: str
    n_bytes: int
    format: int = FORMAT


class Kernels:
    """Loaded kernels by name, "unit/kernel": addresses for tapes, and calls for everyone else."""

    def __init__(self, addresses: dict[str, int]) -> None:
        self._addresses = addresses
        self._functions: dict[str, Callable[[int, int, int], None]] = {}

    def __getitem__(self, name: str) -> int:
        """Return the address of a kernel; an unknown name raises InternalError."""
        found = self._addresses.get(name)
        if found is None:
            raise InternalError(f"There is no kernel “{name}”.{nearest(name, self._addresses)}")
        return found

    def __contains__(self, name: str) -> bool:
        return name in self._addresses

    def __iter__(self) -> Iterator[str]:
        return iter(self._addresses)

    def call(self, name: str, block: NDArray, thread: int = 0, n_threads: int = 1) -> None:
        """Run a kernel on an int64 argument block in this thread, without the GIL."""
        function = self._functions.get(name)
        if function is None:
            function = self._functions[name] = _KERNEL(self[name])
        function(block.ctypes.data, thread, n_threads)


def load(unit_names: Iterable[str], progress: Progress | None = None) -> Kernels:
    """Return the kernels of the named units, compiling those whose object is missing or unfit.

    progress(stage, done 0..1) is called while compiling. Raises MachineError if the objects cannot
    be stored, InternalError if a unit does not compile.
    """
    names = list(dict.fromkeys(unit_names))
    addresses: dict[str, int] = {}
    missing = _link_all(names, addresses)
    if missing:  # who lacks nothing does not wait for what another thread compiles
        with _BUILDING:
            missing = _link_all(list(missing), addresses)
            for _ in range(MAX_BUILDS):
                if missing:
                    from engine.native import build  # not needed when nothing is to be built

                    along = [one for one in units.companions(names) if read(one) is None]
                    build.build([*dict.fromkeys((*missing, *along))], progress)
                    missing = _link_all(list(missing), addresses)
    if missing:
        reasons = " ".join(f"{name}: {reason}" for name, reason in missing.items())
        raise InternalError(f"Kernels were compiled but cannot be used. {reasons}")
    return Kernels(addresses)


def folder() -> Path:
    """Return where the objects of this program, compiler and CPU level live."""
    return env.cache_dir() / "objects" / f"{level.current().name}-{toolchain()[:16]}"


def path_of(unit: str) -> Path:
    """Return the path of a unit's object file."""
    return folder() / f"{unit}.o"


def toolchain() -> str:
    """Return a hash of everything but sources that decides what machine code comes out."""
    target = level.current()
    parts = [*_versions(), level.triple()]
    parts += [target.name, target.cpu, target.feature_string, str(sources.ROOT)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@functools.cache
def _versions() -> tuple[str, ...]:
    """Return the versions of Python and of the compilers."""
    compilers = (importlib.metadata.version(name) for name in ("numba", "llvmlite"))
    return (platform.python_version(), *compilers)


def read(unit: str) -> tuple[Header, bytes] | None:
    """Return the checked content of a unit's object file, or None if it must be compiled."""
    units.find(unit)
    try:
        with open(path_of(unit), "rb") as file:
            header = Header(**json.loads(file.readline(MAX_HEADER_BYTES)))
            content = file.read()
    except (OSError, ValueError, TypeError):
        return None
    fits = (
        (header.format, header.unit, header.toolchain) == (FORMAT, unit, toolchain())
        and header.n_bytes == len(content)
        and header.sha256 == hashlib.sha256(content).hexdigest()
        and bool(header.sources)
        and all(sources.digest(path) == sha256 for path, sha256 in header.sources.items())
    )
    return (header, content) if fits else None


def write(unit: str, kernels: list[str], content: bytes, compiled_from: dict[str, str]) -> None:
    """Store a unit's object under its name in one step, so that no reader sees half of it.

    Raises MachineError if the folder cannot be written.
    """
    sha256 = hashlib.sha256(content).hexdigest()
    header = Header(unit, toolchain(), kernels, compiled_from, sha256, len(content))
    path = path_of(unit)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            try:
                file.write(json.dumps(asdict(header)).encode() + b"\n" + content)
                file.close()
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as error:
        raise MachineError(
            f"Compiled kernels cannot be stored in {path.parent} ({error.strerror}): "
            f"free some space there, or set {env.CACHE_DIR.name} to another folder."
        ) from error


def symbol(unit: str, kernel: str) -> str:
    """Return the linker symbol of a kernel: letters, digits and underscores only."""
    return "inglenook_" + "".join(c if c.isalnum() else "_" for c in f"{unit}_{kernel}")


# Linked objects stay for the life of the process, so kernels stay callable.
_BUILDING = threading.RLock()
_LINKING = threading.Lock()
_LINKED: dict[tuple[str, ...], dict[str, int]] = {}


def _link_all(names: list[str], addresses: dict[str, int]) -> dict[str, str]:
    """Add the addresses of what can be used as it is; return the other units, with the reason."""
    missing = {}
    for name in names:
        content = read(name)
        try:
            with _LINKING:
                addresses |= _link(*content) if content else {}
            reason = "" if content else "No object fits."
        except DamagedObject as error:
            reason = str(error)
        if reason:
            missing[name] = reason
    return missing


def _link(header: Header, content: bytes) -> dict[str, int]:
    """Make an object's code executable; return its kernels' addresses, or raise DamagedObject."""
    key = (header.sha256, *header.kernels)
    if key not in _LINKED:
        symbols = {f"{header.unit}/{name}": symbol(header.unit, name) for name in header.kernels}
        found = _symbols_of(content, list(symbols.values()))
        if not all(found.get(name) for name in symbols.values()):
            raise DamagedObject(f"The object of “{header.unit}” lacks a symbol that it lists.")
        _LINKED[key] = {kernel: found[name] for kernel, name in symbols.items()}
    return _LINKED[key]


def _symbols_of(content: bytes, names: list[str]) -> dict[str, int]:
    if linker.can_link():
        return linker.link(content)
    from engine.native import llvm_linker

    return llvm_linker.link(content, names)
