"""Compiles units in child processes: `python -m engine.native.build UNIT…` is one such child.

Children share one list: each claims the next unit by creating a file, so the work balances itself
and a child that dies leaves a unit undone instead of a lock.
"""

import argparse
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from engine import env
from engine.errors import EngineError, InternalError, MachineError
from engine.native import level, objects, sources, units

POLL_S = 0.05
MACHINE_STATUS = 3  # exit status of a child whose machine failed it
STAGE = "Preparing the engine for this processor"


def build(names: list[str], progress: Callable[[str, float], None] | None = None) -> None:
    """Compile units in up to one child process per core; return when all are stored.

    Calls progress(stage, done 0..1) every POLL_S seconds; if it raises, the children are stopped.
    Raises InternalError with the compiler's last words if a unit fails, MachineError
    if the objects cannot be stored or no compiler can be started.
    """
    if getattr(sys, "frozen", False):
        raise MachineError(
            f"This installation has no kernels for a processor of level “{level.current().name}”: "
            "install a newer version, or run the program from its source."
        )
    report = progress or (lambda stage, done: None)
    names = sorted(names, key=units.is_small)
    with tempfile.TemporaryDirectory(prefix="inglenook-build-") as claims:
        children: list[subprocess.Popen[bytes]] = []
        try:
            for i in range(_n_builders(len(names))):
                children.append(_start(names, Path(claims), i))
            _wait(children, names, Path(claims), report)
        finally:
            for child in children:
                child.kill()
                child.wait()


def _n_builders(n_units: int) -> int:
    wanted = int(env.N_BUILDERS.read() or 0) or len(_cores())
    return max(1, min(wanted, n_units))


def _cores() -> list[int]:
    """Return the cores of this process; a thread that is pinned to one does not count."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(os.getpid()))
    return list(range(os.cpu_count() or 1))


def _start(names: list[str], claims: Path, i: int) -> subprocess.Popen[bytes]:
    cores = ",".join(map(str, _cores()))
    command = [sys.executable, "-m", "engine.native.build", "--claims", str(claims)]
    try:
        with open(claims / f"child-{i}.log", "wb") as log:
            return subprocess.Popen(
                [*command, "--cores", cores, *names],
                cwd=sources.ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
    except OSError as error:
        raise MachineError(
            f"The compiler of the kernels cannot be started ({error.strerror}): "
            "close other programs, then try again."
        ) from error


def _wait(
    children: list[subprocess.Popen[bytes]],
    names: list[str],
    claims: Path,
    report: Callable[[str, float], None],
) -> None:
    while True:
        running = [child for child in children if child.poll() is None]
        n_done = sum((claims / f"{name}.done").exists() for name in names)
        report(STAGE, n_done / len(names))
        if n_done == len(names):
            return
        failed = next((i for i, c in enumerate(children) if c.poll() not in (None, 0)), None)
        if failed is not None or not running:
            i = failed or 0
            raise _failure(claims / f"child-{i}.log", children[i].returncode)
        time.sleep(POLL_S)


def _failure(log: Path, status: int) -> EngineError:
    """Return the error of a child: its last line as the sentence, the lines before as a note."""
    text = log.read_text("utf-8", "replace").strip()
    words = text.splitlines()[-1][:500] if text else "the compiler ended without a word"
    if status == MACHINE_STATUS:
        return MachineError(words)
    error = InternalError(f"Kernels did not compile: {words}")
    error.add_note(text[-4000:])
    return error


def _claim(claims: Path, name: str) -> bool:
    try:
        os.close(os.open(claims / f"{name}.claim", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def _build_here(name: str) -> None:
    """Compile one unit in this process and store it."""
    from engine.native import compiler

    compiled_from = sources.of_unit(name)
    content, kernels = compiler.compile_unit(name)
    objects.write(name, kernels, content, compiled_from)


def main(arguments: list[str]) -> int:
    """Build the units given on the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("units", nargs="+")
    parser.add_argument("--claims", type=Path, help="folder shared by the children of one build")
    parser.add_argument("--cores", help="cores to run on, separated by commas")
    options = parser.parse_args(arguments)
    gc.disable()  # a compiler's short life: looking for garbage takes a tenth of it
    if options.cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(core) for core in options.cores.split(",")})
    for name in options.units:
        if options.claims is None or _claim(options.claims, name):
            try:
                _build_here(name)
            except EngineError as error:
                print(error, file=sys.stderr)
                return MACHINE_STATUS if isinstance(error, MachineError) else 1
            if options.claims is not None:
                (options.claims / f"{name}.done").touch()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
