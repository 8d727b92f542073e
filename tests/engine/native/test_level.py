"""The CPU level: the host's best, a forced one, and refusals."""

import pytest

from engine import env
from engine.errors import MachineError
from engine.native import level


def test_host_is_the_first_runnable(monkeypatch):
    monkeypatch.delenv(env.CPU_LEVEL.name, raising=False)
    assert level.current().name == level.runnable()[0]
    assert level.runnable()[-1] == "generic"


@pytest.mark.parametrize("name", level.runnable())
def test_forced_level_asks_for_no_more_than_it_names(monkeypatch, name):
    monkeypatch.setenv(env.CPU_LEVEL.name, name)
    found = level.current()
    assert found.name == name
    if name in ("avx2", "generic"):
        assert not any(feature.startswith("avx512") for feature in found.features)


def test_unknown_level_is_refused(monkeypatch):
    monkeypatch.setenv(env.CPU_LEVEL.name, "avx3")
    with pytest.raises(MachineError, match="avx"):
        level.current()


def test_level_of_another_machine_is_refused(monkeypatch):
    missing = next(name for name in level.LEVELS if name not in level.runnable())
    monkeypatch.setenv(env.CPU_LEVEL.name, missing)
    with pytest.raises(MachineError, match="cannot run"):
        level.current()
