"""The window waits a moment for what the engine remembers to reach the disk, and says so."""

import time
from concurrent.futures import Future
from types import SimpleNamespace

from app.services import memories as room


def ask(window, qtbot):
    window.pane.send("Why is the sky blue?")
    qtbot.waitUntil(lambda: not window.services.replies.running)
    qtbot.waitUntil(lambda: window.services.memories.n_unsaved() == 1)


def test_closing_keeps_the_last_answer(window, qtbot):
    ask(window, qtbot)
    with qtbot.waitSignal(window.closed):
        window.close()
    assert len(list(window.services.paths.snapshots.glob("*.safetensors"))) == 1
    assert not window.isVisible()


def test_a_slow_disk_is_waited_for_in_words(window, clients, qtbot, monkeypatch):
    ask(window, qtbot)
    late, said = Future(), []
    monkeypatch.setattr(clients.last, "keep", lambda *_: late)
    monkeypatch.setattr(window, "say", lambda sentence, undo=None: said.append(sentence))
    window.close()
    qtbot.waitUntil(lambda: said == ["Saving the memory of 1 chat…"])
    assert window.isVisible()
    with qtbot.waitSignal(window.closed):
        late.set_result(SimpleNamespace(n_tokens=0, elapsed_ms=1.0))


def test_a_stuck_disk_does_not_keep_the_window_open(window, clients, qtbot, monkeypatch):
    monkeypatch.setattr("app.ui.window.LEAVE_S", 0.3)
    monkeypatch.setattr(room, "LEAVE_S", 0.3)
    ask(window, qtbot)
    monkeypatch.setattr(clients.last, "keep", lambda *_: Future())
    began = time.monotonic()
    with qtbot.waitSignal(window.closed):
        window.close()
    window.services.close()
    assert time.monotonic() - began < 2


def test_what_is_said_of_saving_goes_when_it_is_saved(window, clients, qtbot, monkeypatch):
    ask(window, qtbot)
    late = Future()
    monkeypatch.setattr(clients.last, "keep", lambda *_: late)
    window.services.engine.unload()
    qtbot.waitUntil(lambda: window.toast.sentence.text() == "Saving the memory of 1 chat…")
    assert window.toast.isVisible()
    late.set_result(SimpleNamespace(n_tokens=0, elapsed_ms=1.0))
    qtbot.waitUntil(window.toast.isHidden, timeout=2000)
