"""One message to all panes, each with its own values, the shared prompt computed once."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from tests.make import window as make


def settle(window, qtbot, timeout=5000):
    qtbot.waitUntil(lambda: not window.services.replies.running, timeout=timeout)


def test_one_message_goes_to_all_panes_with_their_own_values(window, clients, qtbot):
    window.pane.asked.change_sampling({"temperature": 0.1})
    window.act("pane.split")
    first, second = window.panes.all()
    second.asked.change_sampling({"temperature": 1.9})
    first.composer.set_text("an unsent thought")
    QTest.keyClicks(second.composer.edit, "Compare this")
    both = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    window.activateWindow()
    qtbot.waitUntil(second.composer.edit.hasFocus)
    QTest.keyClick(second.composer.edit, Qt.Key.Key_Return, both)
    settle(window, qtbot)
    asked = sorted(request.params.temperature for request in clients.last.requests[-2:])
    assert asked == [0.1, 1.9]
    for pane in (first, second):
        texts = [message.text for message in pane.transcript.messages]
        assert texts[0] == "Compare this" and len(texts) == 2
    assert first.composer.text() == "an unsent thought" and second.composer.text() == ""
    assert first.conversation_id != second.conversation_id
    stored = window.services.database.conversation(first.conversation_id)
    assert stored.draft == "an unsent thought"


def test_nothing_to_send_and_panes_that_write_are_told(tmp_path, qtbot):
    clients = make.Clients(tokens_per_second=0, n_prompt=0)
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        window.act("pane.send_all")
        assert "first" in window.toast.sentence.text()
        window.pane.send("Go")
        window.act("pane.split")
        window.pane.composer.set_text("Both?")
        window.act("pane.send_all")
        assert "left out: 1" in window.toast.sentence.text()
        assert len(window.services.replies.running) == 2


@pytest.mark.usefixtures("qapp")
def test_the_shared_prompt_is_computed_once(tmp_path, qtbot):
    text = "Which of these is heavier, a pound of feathers or a pound of lead, and why? " * 3
    with make.window(tmp_path, make.starter_client) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready", timeout=60_000)
        window.act("pane.split")
        for pane in window.panes.all():
            pane.asked.keep(n_predict=4)
        window.pane.composer.set_text(text)
        window.act("pane.send_all")
        settle(window, qtbot, 60_000)
        read = [p.transcript.messages[-1].record["timings"] for p in window.panes.all()]
    assert read[0]["n_prompt"] == read[1]["n_prompt"] > 60
    assert min(timings["n_read"] for timings in read) <= 1
