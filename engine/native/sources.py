"""Which source files a unit is compiled from, and the hashes that tell whether they changed.

A unit depends on its kernel module, on what that imports of this package (through every step), and
on the compiler with the vector layer. The list is found by reading imports when the unit is built
and is stored in its object file; loading only compares hashes.
"""

import ast
import hashlib
from pathlib import Path

from engine.native import units

ROOT = Path(__file__).resolve().parents[2]
# Imported by sources below, but nothing in them reaches machine code.
_LOADING = ("linker", "elf", "relocations", "executable_memory", "external", "processor")
_WITHOUT_CODE = frozenset(
    {"engine.errors", "engine.env", *(f"engine.native.{name}" for name in _LOADING)}
)
_ALWAYS = ("engine.native.compiler",)


def of_unit(name: str) -> dict[str, str]:
    """Return {path relative to the project: sha256} of every file the unit is compiled from."""
    found: dict[str, Path] = {}
    waiting = [units.find(name).module, *_ALWAYS]
    while waiting:
        module = waiting.pop()
        path = _path(module)
        if path is None or module in found or module in _WITHOUT_CODE:
            continue
        found[module] = path
        waiting += _imports(path.read_text("utf-8"))
    paths = sorted(path.relative_to(ROOT).as_posix() for path in found.values())
    return {path: digest(path) for path in paths}


def digest(relative: str) -> str:
    """Return the sha256 of a project file as hex, or "" if it cannot be read."""
    try:
        return hashlib.sha256((ROOT / relative).read_bytes()).hexdigest()
    except OSError:
        return ""


def _path(module: str) -> Path | None:
    base = ROOT.joinpath(*module.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def _imports(text: str) -> list[str]:
    """Return the modules of this package that a source imports, at any depth of its code."""
    found: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in found if name.startswith("engine.")]
