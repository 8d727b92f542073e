"""What LLVM says of the processor is remembered, and asked again when anything does not fit."""

import json

import pytest

from engine import env
from engine.native import processor

PLAIN = processor.Processor("some-cpu", frozenset({"a", "b"}), "some-triple")


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """A fresh cache folder, nothing remembered; the list grows when LLVM is asked."""
    times = []

    def ask():
        times.append(1)
        return PLAIN

    monkeypatch.setenv(env.CACHE_DIR.name, str(tmp_path))
    monkeypatch.setattr(processor, "_ask", ask)
    monkeypatch.setattr(processor, "_described", lambda: ["flags: a b"])
    return times


def read():
    return processor.read.__wrapped__()


def test_the_second_start_does_not_ask(asked):
    assert read() == read() == PLAIN
    assert len(asked) == 1


def test_another_processor_is_asked(asked, monkeypatch):
    read()
    monkeypatch.setattr(processor, "_described", lambda: ["flags: a"])
    assert read() == PLAIN
    assert len(asked) == 2


def test_another_llvm_is_asked(asked, monkeypatch):
    read()
    monkeypatch.setattr(processor.importlib.metadata, "version", lambda name: "another")
    read()
    assert len(asked) == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda kept: b"",
        lambda kept: b"[]",
        lambda kept: b"\xff{}",
        lambda kept: kept[:-3],
        lambda kept: json.dumps(json.loads(kept) | {"features": ["a", "b", "c"]}).encode(),
        lambda kept: json.dumps(json.loads(kept) | {"features": [[]]}).encode(),
        lambda kept: json.dumps(json.loads(kept) | {"cpu": None}).encode(),
        lambda kept: json.dumps(json.loads(kept) | {"sum": 3}).encode(),
        lambda kept: b"{}",
    ],
)
def test_a_damaged_memory_is_not_believed(asked, damage):
    read()
    path = processor._path()
    path.write_bytes(damage(path.read_bytes()))
    assert read() == PLAIN
    assert len(asked) == 2
    read()
    assert len(asked) == 2


def test_a_folder_that_cannot_be_written_is_no_obstacle(asked, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv(env.CACHE_DIR.name, str(tmp_path / "file"))
    assert read() == PLAIN


def test_a_silent_system_is_always_asked(asked, monkeypatch):
    monkeypatch.setattr(processor, "_described", list)
    read()
    read()
    assert len(asked) == 2
    assert not processor._path().exists()


def test_the_real_answer_is_the_same_from_the_disk(tmp_path, monkeypatch):
    monkeypatch.setenv(env.CACHE_DIR.name, str(tmp_path))
    real = processor._ask()
    assert read() == real
    monkeypatch.setattr(processor, "_ask", lambda: pytest.fail("asked again"))
    assert read() == real
