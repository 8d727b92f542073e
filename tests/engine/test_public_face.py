"""The public face of the engine is sorted, complete, light to import, and says no clearly."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import engine


def test_every_public_name_exists_and_the_list_is_sorted():
    assert engine.__all__ == sorted(engine.__all__)
    for name in engine.__all__:
        value = getattr(engine, name)
        assert getattr(value, "__name__", name) == name


def test_the_names_for_type_checkers_are_the_same_names():
    tree = ast.parse(Path(engine.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {alias.asname: node.module for node in block.body for alias in node.names}
    assert typed == engine._HOME


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Nonsense"):
        engine.Nonsense  # noqa: B018


def test_importing_the_engine_and_the_fake_loads_nothing_heavy():
    code = "import sys, engine; engine.FakeClient, engine.CompletionRequest; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"numpy", "numba", "llvmlite", "gguf", "jinja2", "PySide6"} & set(loaded)
