"""What was typed stays when the disk refuses, and what was damaged is told."""

import pytest
from PySide6.QtCore import QPoint, QRect
from PySide6.QtTest import QTest

from app.errors import StorageError
from tests.make import window as make


def typed(window, text, qtbot):
    edit = window.pane.composer.edit
    edit.setPlainText(text)
    edit.setFocus()
    qtbot.keyClick(edit, "\r")


def answered(window, text, qtbot):
    typed(window, text, qtbot)
    qtbot.waitUntil(lambda: bool(window.pane.transcript.messages))
    qtbot.waitUntil(lambda: not window.services.replies.running)


@pytest.fixture
def full(window, monkeypatch):
    """Return what lets the disk refuse every new message from now on."""

    def refuse(*_args, **_fields):
        raise StorageError("The disk is full.")

    return lambda: monkeypatch.setattr(window.services.database, "add_message", refuse)


def test_a_question_that_cannot_be_stored_stays_in_the_box(window, full, qtbot):
    answered(window, "Hello", qtbot)
    full()
    typed(window, "My long and precious question", qtbot)
    assert window.toast.sentence.text() == "The disk is full."
    assert window.pane.composer.text() == "My long and precious question"
    assert len(window.pane.transcript.messages) == 2


def test_the_first_question_stays_too_and_makes_no_second_chat(window, full, qtbot, monkeypatch):
    full()
    typed(window, "My first question", qtbot)
    assert window.pane.composer.text() == "My first question"
    monkeypatch.undo()
    qtbot.keyClick(window.pane.composer.edit, "\r")
    qtbot.waitUntil(lambda: len(window.pane.transcript.messages) == 2)
    assert len(window.services.database.conversations()) == 1


def test_an_edited_question_that_cannot_be_stored_is_still_being_edited(window, full, qtbot):
    answered(window, "Hello", qtbot)
    pane = window.pane
    pane.begin_editing(pane.transcript.messages[0])
    full()
    typed(window, "Hello, better", qtbot)
    assert pane.composer.text() == "Hello, better"
    assert pane.banner.isVisible()
    assert [m.text for m in pane.transcript.messages][0] == "Hello"
    assert len(pane.transcript.messages) == 2


def test_damaged_conversations_are_told_until_it_was_read(tmp_path, clients, qtbot):
    with make.window(tmp_path, clients) as window:
        path = window.services.paths.chats
    path.write_bytes(b"no database " * 100)
    with make.window(tmp_path, clients) as window:
        assert "damaged" in window.toast.sentence.text()
        assert window.toast.isVisible()
        assert not window.toast._timer.isActive()
        window.say("Something else.", time_s=0.05)
        assert "damaged" not in window.toast.sentence.text()
        qtbot.waitUntil(lambda: "damaged" in window.toast.sentence.text())
        window.toast.dismiss.click()
        window.say("Something else.", time_s=0.05)
        qtbot.waitUntil(window.toast.isHidden)


def test_the_short_line_covers_neither_the_box_nor_what_can_be_done(window, qtbot):
    answered(window, "Hello\n" * 60, qtbot)
    window.say("Something happened.")
    QTest.qWait(20)
    line = QRect(window.toast.mapTo(window, QPoint(0, 0)), window.toast.size())
    for shown in (window.pane.composer, window.pane.transcript.row):
        place = QRect(shown.mapTo(window, QPoint(0, 0)), shown.size())
        assert not line.intersects(place)
    assert window.rect().contains(line)


def test_a_long_line_stays_inside_a_narrow_window(window, qtbot):
    window.resize(700, 600)
    window.say("The folder of the conversations cannot be written at all. " * 4)
    QTest.qWait(20)
    assert window.rect().contains(window.toast.geometry())
    assert window.toast.sentence.height() > 2 * window.toast.sentence.fontMetrics().height()
