"""Up to four panes: split, closed, dragged into, remembered, all streaming at once."""

import json

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QDragEnterEvent, QDragMoveEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

import engine
from app.ui.widgets.chat_list import CHAT, dragged_chat
from tests.make import window as make

REPLY = engine.FakeClient.__init__.__kwdefaults__["reply"]


def say(pane, text):
    QTest.keyClicks(pane.composer.edit, text)
    QTest.keyClick(pane.composer.edit, Qt.Key.Key_Return)


def settle(window, qtbot):
    qtbot.waitUntil(lambda: not window.services.replies.running)


def answer(pane):
    return pane.transcript.messages[-1]


@pytest.fixture
def slow(tmp_path, qtbot):
    """A window whose answers move only when the test says so."""
    clients = make.Clients(tokens_per_second=0)
    with make.window(tmp_path, clients) as shown:
        qtbot.waitUntil(lambda: shown.services.engine.state == "ready")
        yield shown, clients


def four_asked(window):
    """Ask in four panes and return them."""
    for i in range(4):
        if i:
            window.act("pane.split")
        say(window.pane, f"Question {i}")
    return window.panes.all()


def test_four_panes_stream_at_once_each_its_own_answer(slow, qtbot):
    window, clients = slow
    panes = four_asked(window)
    assert len({pane.conversation_id for pane in panes}) == 4
    clients.last.advance(8)
    qtbot.waitUntil(lambda: all(pane.transcript.text_of(answer(pane)) for pane in panes))
    assert window.status.state.text() == "Writing 4 answers"
    clients.last.advance(200)
    settle(window, qtbot)
    assert [answer(pane).text for pane in panes] == [REPLY] * 4
    questions = sorted(pane.transcript.messages[0].text for pane in panes)
    assert questions == [f"Question {i}" for i in range(4)]


def test_a_fifth_pane_is_refused_with_a_way_out(slow, qtbot):
    window, _ = slow
    four_asked(window)
    window.act("pane.split")
    assert len(window.panes.all()) == 4
    assert "Ctrl+W" in window.toast.sentence.text()


def test_escape_stops_only_the_pane_with_the_attention(slow, qtbot):
    window, clients = slow
    say(window.pane, "First")
    first = window.pane
    window.act("pane.split")
    say(window.pane, "Second")
    second = window.pane
    clients.last.advance(8)
    qtbot.waitUntil(lambda: bool(second.transcript.text_of(answer(second))))
    assert second.composer.stop.text().endswith("Esc")
    assert not first.composer.stop.text().endswith("Esc")
    window.act("message.stop")
    qtbot.waitUntil(lambda: not second.is_running())
    assert answer(second).state == "cancelled" and first.is_running()
    clients.last.advance(200)
    settle(window, qtbot)
    assert answer(first).text == REPLY


def test_closing_a_pane_never_ends_its_answer(slow, qtbot):
    window, clients = slow
    say(window.pane, "First")
    window.act("pane.split")
    say(window.pane, "Second")
    second = window.pane.conversation_id
    clients.last.advance(6)
    window.act("pane.close")
    assert len(window.panes.all()) == 1 and window.pane.conversation_id != second
    clients.last.advance(200)
    settle(window, qtbot)
    window.chats.open(second)
    assert answer(window.pane).text == REPLY


def test_the_last_pane_stays_and_a_draft_on_an_empty_one_becomes_a_chat(window, qtbot):
    window.act("pane.close")
    assert len(window.panes.all()) == 1
    window.act("pane.split")
    QTest.keyClicks(window.pane.composer.edit, "not sent yet")
    window.act("pane.close")
    drafts = [c.draft for c in window.services.database.conversations()]
    assert "not sent yet" in drafts


def test_the_inspector_and_the_keys_follow_the_attention(window, qtbot):
    first = window.pane
    first.asked.change_sampling({"temperature": 1.5})
    window.act("pane.split")
    second = window.pane
    temperature = window.sampling.panel.cards[-1].rows[0]
    assert second is not first and temperature.value == pytest.approx(0.8)
    window.act("pane.next")
    assert window.pane is first and temperature.value == pytest.approx(1.5)
    window.act("pane.previous")
    assert window.pane is second
    first.composer.edit.setFocus()
    QApplication.processEvents()
    assert window.pane is first and first.header._is_marked and not second.header._is_marked


def test_a_chat_is_shown_in_one_pane_only(window, qtbot):
    say(window.pane, "Hello")
    settle(window, qtbot)
    first, chat = window.pane, window.pane.conversation_id
    window.act("pane.split")
    window.chats.open(chat)
    assert window.pane is first and len(window.panes.all()) == 2


def test_deleting_a_chat_empties_the_pane_that_shows_it(window, qtbot):
    say(window.pane, "Hello")
    settle(window, qtbot)
    first, chat = window.pane, window.pane.conversation_id
    window.act("pane.split")
    window.chats.act("chat.delete", chat)
    assert first.conversation_id == 0 and not first.transcript.messages


def drag(window, chat, point):
    """Drag a chat over the panes and let it go at a point of them."""
    row = window.sidebar.model.row_of(chat)
    mime = window.sidebar.model.mimeData([window.sidebar.model.index(row)])
    assert mime.hasFormat(CHAT) and dragged_chat(mime) == chat
    act, left = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    none = Qt.KeyboardModifier.NoModifier
    QApplication.sendEvent(window.panes, QDragEnterEvent(point, act, mime, left, none))
    QApplication.sendEvent(window.panes, QDragMoveEvent(point, act, mime, left, none))
    shaded = window.panes.shade.geometry()
    QApplication.sendEvent(window.panes, QDropEvent(QPointF(point), act, mime, left, none))
    assert window.panes.shade.isHidden()
    return shaded


def test_four_panes_share_the_window_evenly(window, qtbot):
    window.resize(1440, 900)
    qtbot.wait(50)
    for _ in range(3):
        window.panes.split()
        qtbot.wait(20)
    sizes = [(pane.width(), pane.height()) for pane in window.panes.all()]
    assert len(sizes) == 4
    assert min(height for _, height in sizes) > 0.9 * max(height for _, height in sizes)
    assert min(width for width, _ in sizes) > 0.9 * max(width for width, _ in sizes)


def test_dragging_a_chat_onto_a_half_splits_there(window, qtbot):
    say(window.pane, "First")
    settle(window, qtbot)
    first = window.pane.conversation_id
    window.act("chat.start")
    say(window.pane, "Second")
    settle(window, qtbot)
    second = window.pane.conversation_id
    width, height = window.panes.width(), window.panes.height()
    shaded = drag(window, first, QPoint(width - 30, height // 2))
    assert shaded.left() >= width // 2 - 2
    assert [pane.conversation_id for pane in window.panes.all()] == [second, first]
    drag(window, second, QPoint(width * 3 // 4, height - 20))
    assert [pane.conversation_id for pane in window.panes.all()] == [first, second]
    assert window.panes.all()[1].y() > 0 and window.pane.conversation_id == second


def test_dragging_a_chat_onto_the_middle_opens_it_there(window, qtbot):
    say(window.pane, "First")
    settle(window, qtbot)
    first = window.pane.conversation_id
    window.act("chat.start")
    drag(window, first, QPoint(window.panes.width() // 2, window.panes.height() // 2))
    assert [pane.conversation_id for pane in window.panes.all()] == [first]


def test_panes_are_remembered(tmp_path, clients, qtbot):
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        for i in range(3):
            if i:
                window.act("pane.split")
            say(window.pane, f"Question {i}")
            settle(window, qtbot)
        shown = [pane.conversation_id for pane in window.panes.all()]
        tree = json.loads(window.panes.state())
    with make.window(tmp_path, clients) as again:
        assert [pane.conversation_id for pane in again.panes.all()] == shown
        assert json.loads(again.panes.state())["across"] == tree["across"]


@pytest.mark.parametrize(
    "state",
    ["nonsense", "[1, 2]", '{"across": 1}', '{"across": true, "sizes": ["x"], "items": [1, 2]}'],
)
def test_a_damaged_arrangement_is_left_out(window, state):
    window.panes.restore(state)
    assert 1 <= len(window.panes.all()) <= 4 and window.pane in window.panes.all()


def test_a_chat_that_is_gone_leaves_an_empty_pane(window):
    window.panes.restore('{"across": true, "sizes": [300, 300], "items": [77, 78]}')
    assert [pane.conversation_id for pane in window.panes.all()] == [0, 0]


def test_more_answers_than_slots_wait_in_line(tmp_path, qtbot):
    clients = make.Clients(tokens_per_second=0, n_slots=1)
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        for i in range(3):
            if i:
                window.act("pane.split")
            say(window.pane, f"Question {i}")
            clients.last.advance(6 if not i else 1)
            qtbot.wait(50)
        second, third = window.panes.all()[1:]
        sentences = {p.transcript.view_of(answer(p).id).reading.sentence() for p in (second, third)}
        assert sentences == {"Next in line", "2nd in line"}
        assert "2 waiting" in window.status.state.text()
