"""The project's Python files, parsed once: what every gate of the house looks at."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOUSES = ("engine", "app", "packaging", "tests")


@dataclass(frozen=True, eq=False)
class Source:
    """One Python file: its path below the root, and its text."""

    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed file."""
        return ast.parse(self.text, filename=str(self.path))

    @property
    def module(self) -> str:
        """The dotted name under which the file is imported."""
        parts = self.path.with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def is_kernel(self) -> bool:
        """Whether the file is compiled to machine code rather than run."""
        return "kernels" in self.path.parts or self.path.name == "simd.py"

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Every function and method of the file."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


@cache
def read_sources(root: Path, houses: tuple[str, ...] = HOUSES) -> list[Source]:
    """Return the Python files below `root`, in order; fail when a house has none."""
    found = []
    for house in houses:
        files = sorted((root / house).rglob("*.py"))
        if not files:
            raise FileNotFoundError(f"no Python file in {root / house}")
        found += [Source(f.relative_to(root), f.read_text(encoding="utf-8")) for f in files]
    return found
