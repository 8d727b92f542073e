"""The gates of the house: each takes sources and yields one sentence per violation."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from tests.house.sources import Source

MAX_FILE_LINES = 450
MAX_FUNCTION_LINES = 60
MAX_KERNEL_LINES = 90
MAX_FUNCTION_P90 = 30
CLONE_LINES = 6
REFUSED_WORDS = re.compile(
    r"(^|_)(utils?|helpers?|misc|manager|handler|tmp)($|_)|^(common|data|info)$|^(do|new|my)_"
)
CHECKER_NOTE = re.compile(r"\s+# (type: ignore|noqa|pragma).*$")
# Names that other programs dictate: the field's own spelling of an interface.
DICTATED_NAMES = {"info", "data"}


def climbing_imports(sources: Iterable[Source], floors: list[list[str]]) -> Iterator[str]:
    """Yield imports from a room to its own height or higher, and files without a floor."""
    rank = {room: height for height, floor in enumerate(floors) for room in floor}
    houses = {room.split(".")[0] for room in rank}
    for source in sources:
        if source.module.split(".")[0] not in houses:
            continue
        here = _room(source.module, rank)
        if here is None or (here in houses and source.module != here):
            yield f"{source.path}: no floor is declared for {source.module}"
            continue
        for line, name in _imports(source):
            there = _room(name, rank)
            if there and there != here and rank[there] >= rank[here]:
                yield f"{source.path}:{line}: {here} imports {there}, which is not below it"


def forbidden_imports(sources: Iterable[Source], walls: dict[str, list[str]]) -> Iterator[str]:
    """Yield imports that a wall forbids; `walls` maps a room to names it may never import."""
    for source in sources:
        for room, refused in walls.items():
            if source.module != room and not source.module.startswith(room + "."):
                continue
            for line, name in _imports(source):
                if any(name == bad or name.startswith(bad + ".") for bad in refused):
                    yield f"{source.path}:{line}: {room} may never import {name}"


def missing_sentences(sources: Iterable[Source]) -> Iterator[str]:
    """Yield modules whose first docstring line is not one full sentence."""
    for source in sources:
        first = (ast.get_docstring(source.tree) or "").split("\n")[0]
        if len(first.split()) < 3 or not first.endswith((".", ":")):
            yield f"{source.path}: opens without a sentence that says what it owns"


def oversized(sources: Iterable[Source], tables: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield files and functions beyond the hard limits; `tables` are exempt from file length."""
    for source in sources:
        lines = source.text.count("\n")
        if lines > MAX_FILE_LINES and str(source.path) not in tables:
            yield f"{source.path}: {lines} lines, more than {MAX_FILE_LINES}"
        limit = MAX_KERNEL_LINES if source.is_kernel else MAX_FUNCTION_LINES
        for function in source.functions():
            length = (function.end_lineno or function.lineno) - function.lineno + 1
            if length > limit:
                yield (
                    f"{source.path}:{function.lineno}: {function.name} has {length} lines,"
                    f" more than {limit}"
                )


def long_winded(sources: Iterable[Source]) -> Iterator[str]:
    """Yield each house whose functions are long as a habit: 90 % are to fit `MAX_FUNCTION_P90`."""
    lengths: dict[str, list[int]] = defaultdict(list)
    for source in sources:
        if source.is_kernel:
            continue
        for function in source.functions():
            length = (function.end_lineno or function.lineno) - function.lineno + 1
            lengths[source.path.parts[0]].append(length)
    for house, found in lengths.items():
        p90 = sorted(found)[int(len(found) * 0.9)]
        if p90 > MAX_FUNCTION_P90:
            yield f"{house}: nine of ten functions reach {p90} lines, more than {MAX_FUNCTION_P90}"


def long_lines(sources: Iterable[Source], limit: int = 100) -> Iterator[str]:
    """Yield lines wider than `limit` characters, a closing note to a checker not counted."""
    for source in sources:
        for number, line in enumerate(source.text.splitlines(), 1):
            if len(CHECKER_NOTE.sub("", line)) > limit:
                yield f"{source.path}:{number}: {len(line)} characters"


def clones(sources: Iterable[Source]) -> Iterator[str]:
    """Yield groups of functions whose bodies, of `CLONE_LINES` lines or more, are equal."""
    places: dict[str, list[str]] = defaultdict(list)
    for source in sources:
        for function in source.functions():
            body = function.body[1:] if ast.get_docstring(function) else function.body
            if not body or (body[-1].end_lineno or 0) - body[0].lineno + 1 < CLONE_LINES:
                continue
            shape = "\n".join(ast.dump(statement) for statement in body)
            places[shape].append(f"{source.path}:{function.lineno} {function.name}")
    for group in places.values():
        if len(group) > 1:
            yield "the same body in " + ", ".join(group)


def refused_words(sources: Iterable[Source]) -> Iterator[str]:
    """Yield modules, functions and classes named with a word that hides a missing noun."""
    for source in sources:
        names = [(1, part) for part in source.path.with_suffix("").parts]
        for node in ast.walk(source.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.append((node.lineno, _snake(node.name)))
        for line, name in names:
            if REFUSED_WORDS.search(name) and name not in DICTATED_NAMES:
                yield f"{source.path}:{line}: “{name}” names nothing: say what it is"


def swallowed_errors(sources: Iterable[Source]) -> Iterator[str]:
    """Yield bare excepts, and broad ones whose body only passes."""
    for source in sources:
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.ExceptHandler):
                continue
            broad = isinstance(node.type, ast.Name) and node.type.id in (
                "Exception",
                "BaseException",
            )
            silent = all(isinstance(statement, ast.Pass) for statement in node.body)
            if node.type is None or (broad and silent):
                yield f"{source.path}:{node.lineno}: an error is swallowed"


def undocumented(sources: Iterable[Source]) -> Iterator[str]:
    """Yield public functions and classes of the engine and the app without a docstring."""
    for source in sources:
        if source.path.parts[0] not in ("engine", "app") or source.is_kernel:
            continue
        for node in source.tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                if not node.name.startswith("_") and not ast.get_docstring(node):
                    yield f"{source.path}:{node.lineno}: {node.name} has no docstring"


def foreign_words(sources: Iterable[Source], words: Iterable[str]) -> Iterator[str]:
    """Yield lines that mention any of `words`: places and tools that are not the project's."""
    pattern = re.compile("|".join(map(re.escape, words)), re.IGNORECASE)
    for source in sources:
        for number, line in enumerate(source.text.splitlines(), 1):
            if found := pattern.search(line):
                yield f"{source.path}:{number}: mentions “{found.group()}”"


def _room(module: str, rank: dict[str, int]) -> str | None:
    """Return the longest declared room that holds `module`."""
    parts = module.split(".")
    names = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((name for name in names if name in rank), None)


def _imports(source: Source) -> Iterator[tuple[int, str]]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
