"""The house keeps its own rules, and each gate is seen to object to a planted offender."""

import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.house import gates
from tests.house.sources import ROOT, Source, read_sources

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FLOORS = PYPROJECT["tool"]["house"]["engine"]
APP_FLOORS = PYPROJECT["tool"]["house"]["app"]
WALLS = PYPROJECT["tool"]["house"]["walls"]
TABLES = frozenset(PYPROJECT["tool"]["house"]["tables"])
FOREIGN = ("work" + "/scratch", "/work" + "/", "sub" + "agent", "help" + "er-")

LONG_BODY = "\n".join(f"    value = value + {n}" for n in range(gates.MAX_KERNEL_LINES + 1))
HABIT_BODY = "\n".join(f"    value = value - {n}" for n in range(gates.MAX_FUNCTION_P90 + 1))
CLONE_BODY = "\n".join(f"    value = value * {n}" for n in range(gates.CLONE_LINES))
SENTENCE = '"""Owns a planted offence."""\n'

GATES = {
    "floors": lambda sources: gates.climbing_imports(sources, FLOORS),
    "app floors": lambda sources: gates.climbing_imports(sources, APP_FLOORS),
    "walls": lambda sources: gates.forbidden_imports(sources, WALLS),
    "sentences": gates.missing_sentences,
    "sizes": lambda sources: gates.oversized(sources, TABLES),
    "habits": gates.long_winded,
    "widths": gates.long_lines,
    "clones": gates.clones,
    "words": gates.refused_words,
    "errors": gates.swallowed_errors,
    "docstrings": gates.undocumented,
    "places": lambda sources: gates.foreign_words(sources, FOREIGN),
}

OFFENDERS = {
    "floors": [("engine/gguf/planted.py", SENTENCE + "from engine.server import loop\n")],
    "app floors": [("app/chats/planted.py", SENTENCE + "from app.ui import window\n")],
    "walls": [("engine/planted.py", SENTENCE + "from PySide6.QtWidgets import QWidget\n")],
    "sentences": [("app/planted.py", '"""Planted"""\n')],
    "sizes": [("engine/planted.py", f"{SENTENCE}def grow(value):\n{LONG_BODY}\n")],
    "habits": [("app/planted.py", f"{SENTENCE}def grow(value):\n{HABIT_BODY}\n")],
    "widths": [("app/planted.py", SENTENCE + "#" * 101 + "\n")],
    "clones": [
        ("app/one.py", f"{SENTENCE}def one(value):\n{CLONE_BODY}\n"),
        ("app/two.py", f"{SENTENCE}def two(value):\n{CLONE_BODY}\n"),
    ],
    "words": [("app/utils.py", SENTENCE)],
    "errors": [("app/planted.py", SENTENCE + "try:\n    x = 1\nexcept Exception:\n    pass\n")],
    "docstrings": [("app/planted.py", SENTENCE + "def open_window():\n    return 1\n")],
    "places": [("app/planted.py", SENTENCE + f"PLACE = '{FOREIGN[0]}'\n")],
}


@pytest.mark.parametrize("gate", GATES)
def test_the_house_passes(gate):
    assert list(GATES[gate](read_sources(ROOT))) == []


@pytest.mark.parametrize("gate", GATES)
def test_the_gate_can_fail(gate):
    planted = [Source(Path(path), text) for path, text in OFFENDERS[gate]]
    assert list(GATES[gate](planted)), f"the gate “{gate}” let its offender through"


def test_a_lawful_import_passes():
    lawful = Source(Path("engine/server/planted.py"), SENTENCE + "from engine.text import bpe\n")
    assert list(gates.climbing_imports([lawful], FLOORS)) == []


def test_every_declared_room_exists():
    rooms = [room for floor in FLOORS + APP_FLOORS for room in floor]
    missing = [
        room
        for room in rooms
        if not (ROOT / room.replace(".", "/")).with_suffix(".py").exists()
        and not (ROOT / room.replace(".", "/") / "__init__.py").exists()
    ]
    assert missing == []


def test_data_folders_are_not_packages():
    for folder in ("packaging", "resources", "icons", "tests"):
        assert not list((ROOT / folder).rglob("__init__.py")), folder


def test_every_dependency_has_a_reason():
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    start = lines.index("dependencies = [")
    listed = [line for line in lines[start + 1 : lines.index("]", start)] if line.strip()]
    assert all("#" in line for line in listed), listed


def test_no_model_or_archive_is_tracked():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.splitlines()
    refused = (".gguf", ".whl", ".o", ".so", ".safetensors")
    assert [name for name in listed if name.endswith(refused)] == []
