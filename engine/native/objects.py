"""Object files of compiled units: naming, checking, building what is missing, loading.

A file is one JSON line (what it is, what it was compiled from, its checksum) and then the object.
It is used only if compiler versions, CPU level, sources, checksum and symbols all fit; otherwise
the unit is compiled again in a child process. Loading needs LLVM but never Numba.
"""

import ctypes
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

import llvmlite.binding as llvm
from numpy.typing import NDArray

from engine import env
from engine.errors import InternalError, MachineError, nearest
from engine.native import level, sources, units

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
    with _LOADING:
        found = {name: read(name) for name in names}
        for _ in range(MAX_BUILDS):
            missing = [name for name, content in found.items() if content is None]
            if not missing:
                break
            from engine.native import build  # not needed when nothing is to be built

            along = [name for name in units.companions(names) if read(name) is None]
            build.build([*missing, *along], progress)
            found.update({name: read(name) for name in missing})
        addresses: dict[str, int] = {}
        for name, content in found.items():
            if content is None:
                raise InternalError(f"Kernel unit “{name}” was compiled but cannot be used.")
            addresses |= _link(*content)
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
    versions = [importlib.metadata.version(name) for name in ("numba", "llvmlite")]
    parts = [platform.python_version(), *versions, llvm.get_process_triple()]
    parts += [target.name, target.cpu, target.feature_string, str(sources.ROOT)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


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


# One engine per object, kept for the life of the process: kernels stay callable.
_LOADING = threading.RLock()
_LINKED: dict[str, tuple[llvm.ExecutionEngine, dict[str, int]]] = {}


def _link(header: Header, content: bytes) -> dict[str, int]:
    """Make an object's code executable; return its kernels' addresses."""
    if header.sha256 not in _LINKED:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine()
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        engine.add_object_file(llvm.ObjectFileRef.from_data(content))
        engine.finalize_object()
        addresses = {
            f"{header.unit}/{kernel}": engine.get_function_address(symbol(header.unit, kernel))
            for kernel in header.kernels
        }
        if not all(addresses.values()):
            raise InternalError(f"Kernel unit “{header.unit}” lacks a symbol that it lists.")
        _LINKED[header.sha256] = engine, addresses
    return _LINKED[header.sha256][1]
