"""What a person does in the window, from the first word to finding it again after a restart."""

import math
import os
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit, QWidget

import engine
from app.ui.theme import theme
from tests.make import window as make

REPLY = engine.FakeClient.__init__.__kwdefaults__["reply"]


def say(window, text):
    QTest.keyClicks(window.pane.composer.edit, text)
    QTest.keyClick(window.pane.composer.edit, Qt.Key.Key_Return)


def settle(window, qtbot):
    qtbot.waitUntil(lambda: not window.services.replies.running)


def shown_text(window, place=-1):
    view = window.pane.transcript._views[len(window.pane.transcript.messages) + place]
    return "\n".join(block.text() for block in view.views)


def test_type_stream_and_find_again_after_a_restart(tmp_path, clients, qtbot):
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        say(window, "Why is the sky blue?")
        settle(window, qtbot)
        assert "scripted answer" in shown_text(window)
        assert window.pane.header.title.full_text() == "Why is the sky blue?"
        window.pane.composer.set_text("half a thought")
    with make.window(tmp_path, clients) as again:
        assert again.pane.header.title.full_text() == "Why is the sky blue?"
        assert "scripted answer" in shown_text(again)
        assert again.pane.composer.text() == "half a thought"
        QTest.keyClicks(again.sidebar.search, "scripted")
        qtbot.waitUntil(lambda: any(row.kind == "hit" for row in again.sidebar.model.rows))
        hit = next(row for row in again.sidebar.model.rows if row.kind == "hit")
        again.pane.open(None)
        QTest.keyClick(again.sidebar.search, Qt.Key.Key_Return)
        assert again.pane.conversation_id == hit.conversation_id


def test_enter_sends_shift_enter_does_not(window, qtbot):
    edit = window.pane.composer.edit
    QTest.keyClicks(edit, "one")
    QTest.keyClick(edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClicks(edit, "two")
    assert edit.toPlainText() == "one\ntwo" and not window.pane.transcript.messages
    QTest.keyClick(edit, Qt.Key.Key_Return)
    settle(window, qtbot)
    assert window.pane.transcript.messages[0].text == "one\ntwo" and not edit.toPlainText()


def test_enter_never_sends_while_an_input_method_composes(window):
    from PySide6.QtGui import QInputMethodEvent

    edit = window.pane.composer.edit
    QTest.keyClicks(edit, "x")
    QApplication.sendEvent(edit, QInputMethodEvent("にほ", []))
    QTest.keyClick(edit, Qt.Key.Key_Return)
    assert not window.pane.transcript.messages


def test_escape_stops_and_keeps_what_came(tmp_path, qtbot):
    clients = make.Clients(tokens_per_second=0)
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        say(window, "Go")
        assert not window.pane.composer.stop.isHidden() and window.pane.composer.send.isHidden()
        view = window.pane.transcript._views[1]
        clients.last.advance(2)
        qtbot.waitUntil(lambda: view.reading is not None and view.reading.n_prompt > 0)
        assert "Reading" in view.reading.sentence()
        clients.last.advance(8)
        qtbot.waitUntil(lambda: bool(view.views))
        window.act("message.stop")
        settle(window, qtbot)
        assert window.pane.transcript.messages[-1].state == "cancelled"
        assert window.pane.transcript.messages[-1].text
        assert not window.pane.composer.send.isHidden()


def test_regenerate_makes_a_version_and_the_arrows_walk(window, qtbot):
    say(window, "Hello")
    settle(window, qtbot)
    first = window.pane.transcript.messages[-1].id
    window.act("message.regenerate")
    settle(window, qtbot)
    assert window.pane.transcript.messages[-1].id != first
    assert window.pane.transcript.row.position.text() == "2/2"
    window.act("message.previous_version")
    assert window.pane.transcript.messages[-1].id == first
    assert window.pane.transcript.row.position.text() == "1/2"


def test_editing_a_question_keeps_the_old_one(window, qtbot):
    say(window, "First wording")
    settle(window, qtbot)
    QTest.keyClick(window.pane.composer.edit, Qt.Key.Key_Up)
    assert window.pane.composer.text() == "First wording" and window.pane.banner.isVisible()
    window.pane.composer.set_text("Second wording")
    QTest.keyClick(window.pane.composer.edit, Qt.Key.Key_Return)
    settle(window, qtbot)
    question = window.pane.transcript.messages[0]
    assert question.text == "Second wording"
    versions = window.services.database.siblings(question.id)
    assert [version.text for version in versions] == ["First wording", "Second wording"]


def test_delete_a_message_and_undo(window, qtbot):
    say(window, "Hello")
    settle(window, qtbot)
    window.pane.acts.act("message.delete", window.pane.transcript.messages[-1])
    assert len(window.pane.transcript.messages) == 1
    window.toast.undo.click()
    assert len(window.pane.transcript.messages) == 2


def test_delete_a_chat_and_undo(window, qtbot):
    say(window, "Hello")
    settle(window, qtbot)
    chat = window.pane.conversation_id
    window.act("chat.delete")
    assert window.sidebar.model.row_of(chat) < 0 and not window.pane.transcript.messages
    assert window.toast.isVisible()
    window.toast.undo.click()
    assert window.pane.conversation_id == chat and window.sidebar.model.row_of(chat) >= 0


def test_rename_in_the_head_and_in_the_list(window, qtbot):
    say(window, "Hello")
    settle(window, qtbot)
    window.act("chat.rename")
    window.pane.header.field.setText("A better name")
    QTest.keyClick(window.pane.header.field, Qt.Key.Key_Return)
    assert window.sidebar.model.rows[1].title == "A better name"
    window.sidebar.model.setData(window.sidebar.model.index(1), "Another")
    assert window.pane.header.title.full_text() == "Another"


def test_sliders_presets_and_the_next_request(window, clients, qtbot):
    temperature = window.sampling.panel.cards[-1]
    assert temperature.title_text == "Temperature" and not temperature.is_changed()
    temperature.rows[0].box.setText("1.4")
    temperature.rows[0].box.editingFinished.emit()
    assert temperature.is_changed()
    say(window, "Hello")
    settle(window, qtbot)
    assert clients.last.requests[-1].params.temperature == pytest.approx(1.4)
    assert window.pane.transcript.messages[-1].record["sampling"]["temperature"] == 1.4
    temperature.rows[0].slider.reset.emit()
    assert not temperature.is_changed()
    window.sampling.panel.presets.buttons["precise"].click()
    assert window.pane.params["sampling"]["temperature"] == 0.2
    assert window.sampling.panel.presets.buttons["precise"].isChecked()
    say(window, "Again")
    settle(window, qtbot)
    assert clients.last.requests[-1].params.temperature == pytest.approx(0.2)


def test_a_slider_moves_a_running_answer(tmp_path, qtbot):
    clients = make.Clients(tokens_per_second=0)
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        qtbot.waitUntil(lambda: bool(window.sampling.panel.cards))
        say(window, "Go")
        clients.last.advance(6)
        slider = window.sampling.panel.cards[-1].rows[0].slider
        slider.setFocus()
        QTest.keyClick(slider, Qt.Key.Key_Right)
        reply = next(iter(window.services.replies.running.values()))
        assert reply.changes[0]["values"] == {"temperature": pytest.approx(0.85)}


def test_a_failed_answer_is_told_in_the_pane(window, clients, qtbot):
    clients.last.fail_next(engine.ContextFullError("The context is full: start a new chat."), 4)
    say(window, "Hello")
    settle(window, qtbot)
    view = window.pane.transcript._views[1]
    assert view.error.sentence.text() == "The context is full: start a new chat."
    view.error.copy()
    assert "context full" in QGuiApplication.clipboard().text()
    view.error.remedy.emit("regenerate")
    settle(window, qtbot)
    assert "scripted answer" in shown_text(window)


def test_a_model_that_cannot_be_loaded_is_told_with_a_remedy(tmp_path, qtbot):
    clients = make.Clients(
        load_error=engine.ModelFileError("The file is cut short: 3.1 of 4.7 GB.")
    )
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "failed")
        assert window.models.panel.error.sentence.text().startswith("The file is cut short")
        assert window.pane.composer.blocked
        window.pane.send("Hello")
        assert window.pane.composer.text() == "Hello"
        clients.options = {}
        window.load_model(tmp_path / "good.gguf")
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        assert not window.pane.composer.blocked and window.models.panel.error is None
        clients.made[0].close()


def test_without_a_model_the_first_card_is_shown(tmp_path, clients, qtbot):
    with make.window(tmp_path, clients, model="") as window:
        assert window.pane.pages.currentWidget() is window.pane.welcome
        assert window.pane.welcome.starter.isVisible()


def drop(window, path):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path))])
    spot, buttons = QPoint(50, 50), Qt.MouseButton.LeftButton
    keys, act = Qt.KeyboardModifier.NoModifier, Qt.DropAction.CopyAction
    enter = QDragEnterEvent(spot, act, mime, buttons, keys)
    QApplication.sendEvent(window, enter)
    if enter.isAccepted():
        QApplication.sendEvent(window, QDropEvent(QPointF(spot), act, mime, buttons, keys))
    return enter.isAccepted()


def test_a_dropped_model_is_loaded_anything_else_is_not(window, clients, tmp_path, qtbot):
    assert not drop(window, tmp_path / "letter.txt")
    assert drop(window, tmp_path / "größe Модель 模型.gguf")
    qtbot.waitUntil(lambda: window.services.engine.state == "ready")
    assert clients.asked[-1]["path"].name == "größe Модель 模型.gguf"


def test_the_look_switches_while_an_answer_is_on_the_page(window, qtbot):
    say(window, "Hello")
    settle(window, qtbot)
    light = window.grab().toImage().pixelColor(window.width() // 2, 200).lightness()
    window.change_setting("theme", "dark")
    qtbot.wait(30)
    dark = window.grab().toImage().pixelColor(window.width() // 2, 200).lightness()
    assert light > 200 > 60 > dark and "scripted answer" in shown_text(window)
    window.set_zoom(1.3)
    assert theme.px(10) == 13 and "scripted answer" in shown_text(window)
    window.set_zoom(1.0)


def test_text_is_drawn_with_real_letters(window, qtbot):
    """Without fonts every letter is the same box."""
    metrics = window.pane.composer.edit.fontMetrics()
    assert metrics.horizontalAdvance("iiii") < metrics.horizontalAdvance("WWWW")


def test_every_control_has_a_name(window, qtbot):
    say(window, "Hello")
    settle(window, qtbot)
    nameless = [
        widget
        for widget in window.findChildren(QWidget)
        if isinstance(widget, (QAbstractButton, QLineEdit))
        or widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        if not (widget.accessibleName() or getattr(widget, "text", str)())
        if not widget.objectName().startswith("qt_")
    ]
    assert not nameless, nameless


def test_a_session_opens_no_socket(tmp_path, clients, qtbot):
    fds = Path("/proc/self/fd")
    if not fds.exists():
        pytest.skip("this system does not show the open files of a process")

    def sockets():
        out = set()
        for link in fds.iterdir():
            try:
                target = os.readlink(link)
            except OSError:
                continue
            if target.startswith("socket:"):
                out.add(target)
        return out

    before = sockets()
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        say(window, "Hello")
        settle(window, qtbot)
        assert sockets() <= before


def test_closing_asks_once_while_an_answer_runs(tmp_path, qtbot):
    clients = make.Clients(tokens_per_second=0)
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        say(window, "Go")
        assert not window.close() and window.isVisible()
        from PySide6.QtWidgets import QMessageBox

        box = window.findChild(QMessageBox)
        assert box is not None
        next(b for b in box.buttons() if b.text() == "Stop and quit").click()
        qtbot.waitUntil(lambda: not window.isVisible())


def test_the_narrow_window_lays_the_inspector_over_the_pane(window, qtbot):
    window.resize(700, 600)
    qtbot.waitUntil(lambda: window.columns.is_overlaid())
    assert window.inspector.isHidden()
    window.act("window.inspector")
    assert window.inspector.isVisible()
    window.inspector.close_button.click()
    assert window.inspector.isHidden()
    window.act("window.inspector")
    window.resize(1400, 800)
    assert not window.columns.is_overlaid() and window.inspector.isVisible()


def test_window_state_and_choices_are_remembered(tmp_path, clients, qtbot):
    with make.window(tmp_path, clients) as window:
        window.resize(790, 700)
        window.act("window.sidebar")
    with make.window(tmp_path, clients) as again:
        assert (again.width(), again.height()) == (790, 700) and again.sidebar.isHidden()


def test_the_system_prompt_is_told_first(window, clients, qtbot):
    window.pane.composer.system.click()
    QTest.keyClicks(window.pane.system.edit, "Be brief.")
    qtbot.waitUntil(lambda: window.pane.params.get("system") == "Be brief.")
    say(window, "Hello")
    settle(window, qtbot)
    first = clients.last.requests[-1].prompt[0]
    assert first == {"role": "system", "content": "Be brief."}


def test_speed_and_state_stand_in_the_status_line(tmp_path, qtbot):
    clients = make.Clients(tokens_per_second=math.inf)
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        assert window.status.state.text() == "Ready · fake"
        assert "CPU" in window.status.device.text()
        window.models._on_measured(1, 1, 20, 42.5)
        assert window.status.rate.text() == "42.5 tokens/s"


def test_dialogs_open_beside_the_window_and_close(window, qtbot):
    for key in ("window.keys", "window.settings", "window.about"):
        window.act(key)
    window.pane.link_wanted.emit("https://example.org/")
    from PySide6.QtWidgets import QDialog

    dialogs = window.findChildren(QDialog)
    assert len(dialogs) == 4
    for dialog in dialogs:
        dialog.close()


def test_keys_of_the_window_win_over_those_of_the_text_field(window, qtbot):
    window.activateWindow()
    window.pane.composer.edit.setFocus()
    QTest.keyClicks(window.pane.composer.edit, "some words")
    QTest.keyClick(window.pane.composer.edit, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    assert window.pane.composer.text() == "some words"
    assert window.sidebar.search.hasFocus()


def test_a_draft_on_an_empty_page_is_never_lost(tmp_path, clients, qtbot):
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        say(window, "First")
        settle(window, qtbot)
        first = window.pane.conversation_id
        window.act("chat.start")
        QTest.keyClicks(window.pane.composer.edit, "not sent yet")
        window.chats.open(first)
        assert window.pane.composer.text() == ""
        window.act("chat.start")
        assert window.pane.composer.text() == "not sent yet"
    with make.window(tmp_path, clients) as again:
        assert again.pane.composer.text() == "not sent yet"


def test_escape_leaves_editing_and_gives_the_draft_back(window, qtbot):
    say(window, "Hello")
    settle(window, qtbot)
    QTest.keyClicks(window.pane.composer.edit, "a draft")
    window.act("message.edit_question")
    assert window.pane.composer.text() == "Hello"
    window.act("message.stop")
    assert window.pane.composer.text() == "a draft" and not window.pane.banner.isVisible()


def test_the_menu_of_a_message_offers_its_actions(window, qtbot):
    from PySide6.QtWidgets import QMenu

    say(window, "Hello")
    settle(window, qtbot)
    window.pane.transcript._views[1].menu_wanted.emit(QPoint(300, 300))
    menu = next(m for m in window.findChildren(QMenu) if m.isVisible())
    labels = [entry.text() for entry in menu.actions()]
    assert labels[:3] == ["Copy", "Edit", "Regenerate"]
    menu.close()


def test_the_starter_model_comes_when_asked_for_and_loads(tmp_path, clients, qtbot, monkeypatch):
    from app.library import starter as library

    monkeypatch.setattr(library, "fetch", lambda model, models, *_: models / model.file)
    with make.window(tmp_path, clients, model="") as window:
        window.pane.welcome.starter.click()
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        assert clients.asked[0]["path"].name == window.models.starter.model.file
        assert window.pane.pages.currentWidget() is window.pane.empty


def test_an_answer_goes_on_when_another_chat_is_on_show(tmp_path, qtbot):
    clients = make.Clients(tokens_per_second=0)
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        say(window, "First")
        first = window.pane.conversation_id
        clients.last.advance(8)
        window.act("chat.start")
        assert not window.pane.transcript.messages and window.pane.composer.stop.isHidden()
        row = window.sidebar.model.rows[window.sidebar.model.row_of(first)]
        assert row.lamp == "running"
        clients.last.advance(4)
        qtbot.wait(60)
        window.chats.open(first)
        half = shown_text(window)
        assert half and not window.pane.composer.stop.isHidden()
        clients.last.advance(200)
        settle(window, qtbot)
        assert window.pane.transcript.messages[-1].text == REPLY
        assert shown_text(window).startswith(half[:10])
