"""The window of a test: themed, with samplers, never asking the real engine."""

import pytest

import engine
from app.ui.theme import theme
from tests.make import window as make


@pytest.fixture(autouse=True)
def look(qapp, monkeypatch):
    """Start every test in light at normal size, with a small table of samplers."""
    monkeypatch.setattr(engine, "SAMPLING_SETTINGS", make.SAMPLERS, raising=False)
    theme.start(qapp, "light", 1.0)
    yield
    theme.choose("light")


@pytest.fixture
def clients():
    """FakeClients as fast as possible; a test may set `options` before the window opens."""
    return make.Clients()


@pytest.fixture
def window(tmp_path, clients, qtbot):
    """A window with a loaded model."""
    with make.window(tmp_path, clients) as shown:
        qtbot.waitUntil(lambda: shown.services.engine.state == "ready")
        qtbot.waitUntil(lambda: bool(shown.sampling.panel.cards))
        yield shown
