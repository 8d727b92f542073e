"""Small things that a person sees at once when they are wrong: sizes, places, names, focus."""

from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtTest import QTest

from app.ui.theme import theme
from app.ui.widgets.flow import FlowLayout


def say(window, text):
    QTest.keyClicks(window.pane.composer.edit, text)
    QTest.keyClick(window.pane.composer.edit, Qt.Key.Key_Return)


def settle(window, qtbot):
    qtbot.waitUntil(lambda: not window.services.replies.running)


def test_side_columns_grow_with_the_zoom_and_nothing_is_cut(window, qtbot):
    window.resize(1400, 850)
    before = window.inspector.width(), window.sidebar.width()
    window.set_zoom(1.4)
    after = window.inspector.width(), window.sidebar.width()
    assert all(b >= a * 1.3 for a, b in zip(before, after, strict=True))
    assert window.status.lamp.width() == theme.px(10) == 14
    assert window.pane.header.ring.width() == theme.px(22)
    panel = window.sampling.panel
    assert panel.width() >= panel.minimumSizeHint().width()
    window.set_zoom(1.0)


def test_idle_samplers_stand_aside_as_chips_and_come_back(window):
    panel = window.sampling.panel
    penalties = panel.cards[0]
    assert penalties.isHidden() and panel.chips["penalties"].text() == "+ Penalties"
    assert not panel.chips["penalties"].isHidden() and panel.chips["top_k"].isHidden()
    panel.chips["penalties"].click()
    assert not penalties.isHidden() and panel.chips["penalties"].isHidden()
    penalties.rows[0].box.setText("1.2")
    penalties.rows[0].box.editingFinished.emit()
    penalties.off.click()
    assert penalties.isHidden() and window.pane.params["sampling"]["repeat_penalty"] == 1.0
    panel.cards[1].off.click()
    assert window.pane.params["sampling"]["top_k"] == 0 and panel.cards[1].isHidden()


def test_the_row_of_an_own_message_stands_under_its_bubble(window, qtbot):
    say(window, "Hello")
    settle(window, qtbot)
    transcript = window.pane.transcript
    transcript.view_of(transcript.messages[0].id).hovered.emit()
    row = transcript.row
    row.layout().activate()
    bubble = transcript.view_of(transcript.messages[0].id)._bubble
    last = row.buttons["message.delete"]
    right = row.x() + last.geometry().right()
    assert abs(right - bubble.right()) < theme.px(10)
    transcript.attention.leave()
    assert transcript.attention.message().id == transcript.messages[-1].id
    row.layout().activate()
    left, width = transcript.column()
    figures = row.x() + row.figures.geometry().right()
    assert abs(figures - (left + width)) < theme.px(3)


def test_messages_stand_close_but_the_row_fits_between(window, qtbot):
    for text in ("One", "Two"):
        say(window, text)
        settle(window, qtbot)
    transcript = window.pane.transcript
    views = [transcript.view_of(message.id) for message in transcript.messages]
    for above, below in zip(views, views[1:], strict=False):
        blocks = above.views
        bottom = above.y() + blocks[-1].y + blocks[-1].height
        gap = below.y() + below.views[0].y - bottom
        assert theme.px(24) <= gap <= theme.px(50)


def test_renaming_shows_the_beginning_and_escape_gives_the_keyboard_back(window, qtbot):
    say(window, "A rather long title that goes on for quite a while and then some more")
    settle(window, qtbot)
    window.activateWindow()
    window.act("chat.rename")
    field = window.pane.header.field
    assert field.hasSelectedText() and field.cursorPosition() == 0
    window.act("message.stop")
    assert not window.pane.header.is_renaming() and window.pane.composer.edit.hasFocus()


def test_files_and_chats_dropped_on_the_box_are_no_text(window):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile("/models/größe.gguf")])
    edit = window.pane.composer.edit
    assert not edit.canInsertFromMimeData(mime)
    text = QMimeData()
    text.setText("words")
    assert edit.canInsertFromMimeData(text)


def test_an_empty_list_says_what_belongs_there(window, qtbot):
    assert window.sidebar.list.note.isVisible()
    say(window, "Hello")
    settle(window, qtbot)
    assert window.sidebar.list.note.isHidden()


def test_a_download_can_be_cancelled_where_it_was_started(window, qtbot):
    welcome = window.pane.welcome
    ended = []
    welcome.cancelled.connect(lambda: ended.append(True))
    welcome.show_progress(0.4, "Downloading… 40%")
    assert welcome.starter.text() == "Cancel"
    welcome._on_starter_clicked()
    assert ended
    welcome.show_progress(None)
    assert welcome.starter.text() == "Get the starter model"


def test_a_narrow_pane_shortens_the_chip_and_keeps_its_words(window, qtbot):
    window.pane.header.set_model("A model with a remarkably long name · Q4_K_M")
    window.resize(1500, 800)
    for _ in range(2):
        window.act("pane.split")
    window.resize(900, 700)
    qtbot.wait(20)
    for pane in window.panes.all():
        chip = pane.header.chip
        assert chip.geometry().right() < pane.header.width()
        assert chip.full_text() in chip.toolTip()


def test_widgets_flow_into_lines(qtbot):
    from PySide6.QtWidgets import QPushButton, QWidget

    page = QWidget()
    qtbot.addWidget(page)
    flow = FlowLayout(page, 6)
    for i in range(6):
        made = QPushButton(f"Button {i}")
        made.setFixedSize(90, 20)
        flow.addWidget(made)
    assert flow.heightForWidth(1000) == 20
    assert flow.heightForWidth(300) == 2 * 20 + 6
    page.resize(300, 100)
    page.show()
    assert flow.itemAt(3).geometry().topLeft() == QPoint(0, 26)


def test_a_very_long_paste_is_folded_and_opens(window, qtbot):
    text = "".join(f"Line {i} of a long paste\n" for i in range(2000)) + "the very end"
    window.pane.send(text)
    settle(window, qtbot)
    transcript = window.pane.transcript
    view = transcript.view_of(transcript.messages[0].id) or transcript._views.get(0)
    if view is None:
        transcript.go_to_message(transcript.messages[0].id)
        view = transcript.view_of(transcript.messages[0].id)
    assert f"{len(text):,}" in view.rest.text() and view.rest.isVisibleTo(view)
    shown = "\n".join(block.text() for block in view.views)
    assert shown.startswith("Line 0") and "the very end" not in shown
    before = view.needed_height()
    view.rest.click()
    shown = "\n".join(block.text() for block in view.views)
    assert "the very end" in shown and view.needed_height() > 5 * before
    assert transcript.messages[0].text == text


def test_finding_opens_a_folded_message(window, qtbot):
    window.pane.send("word " * 3000 + "needle")
    settle(window, qtbot)
    window.act("page.find")
    QTest.keyClicks(window.pane.find_bar.field, "needle")
    assert window.pane.transcript.pointer.selected_text() == "needle"


def test_an_endless_word_wraps_anywhere_everything_else_at_words(window):
    from PySide6.QtGui import QTextOption

    edit = window.pane.composer.edit
    edit.setPlainText("x" * 20_000)
    assert edit.wordWrapMode() == QTextOption.WrapMode.WrapAnywhere
    edit.setPlainText("x " * 20_000)
    assert edit.wordWrapMode() == QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere


def test_a_long_value_is_shown_in_part_and_copied_whole(window, qtbot):
    from PySide6.QtGui import QGuiApplication
    from PySide6.QtWidgets import QLabel

    from app.ui.widgets.details_popup import DetailsPopup

    grammar = "root ::= " + " | ".join(f'"word{i}"' for i in range(100))
    popup = DetailsPopup("How", [("Sampling", ""), ("grammar", grammar)], window)
    shown = [part.text() for part in popup.findChildren(QLabel)]
    assert "Sampling" in shown and grammar not in shown
    assert any(text.startswith("root ::=") and text.endswith("…") for text in shown)
    assert popup.sizeHint().width() < 700
    popup._copy()
    assert f"grammar: {grammar}" in QGuiApplication.clipboard().text()
    popup.close()
