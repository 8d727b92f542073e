"""The page: few messages are built, following stops and resumes, text can be selected."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from app.ui.theme import theme
from app.ui.widgets.message import MessageView, Reading
from app.ui.widgets.transcript import Transcript


@dataclass(frozen=True)
class Line:
    id: int
    role: str = "assistant"
    text: str = ""
    state: str = "finished"
    record: dict[str, Any] = field(default_factory=dict)


def lines(n):
    return [
        Line(i, "user" if i % 2 == 0 else "assistant", f"Message {i}. " + "words and words " * 20)
        for i in range(n)
    ]


@pytest.fixture
def page(qtbot):
    made = Transcript()
    qtbot.addWidget(made)
    made.resize(800, 600)
    made.show()
    return made


def test_ten_thousand_messages_build_only_what_is_near(page):
    page.set_messages(lines(10_000))
    assert 1 <= page.n_built() <= 24
    bar = page.verticalScrollBar()
    assert bar.value() == bar.maximum() > 100_000
    bar.setValue(bar.maximum() // 2)
    assert 1 <= page.n_built() <= 24
    bar.setValue(0)
    assert page._views[0].y() == 0


def test_scrolling_up_keeps_the_line_under_the_eye(page):
    page.set_messages(lines(400))
    bar = page.verticalScrollBar()
    bar.setValue(bar.maximum() // 3)
    for _ in range(50):
        first = min(o for o, v in page._views.items() if v.geometry().bottom() > 0)
        before = page._views[first].y()
        bar.setValue(bar.value() - 30)
        assert page._views[first].y() == before + 30


def test_it_follows_at_the_bottom_only(page, qtbot):
    page.set_messages([*lines(40), Line(99, text="Start", state="running")])
    bar = page.verticalScrollBar()
    page.append_text(99, "\n\nmore\n\n" * 30)
    assert bar.value() == bar.maximum() and page.newest.isHidden()
    bar.setValue(bar.value() - 300)
    at = bar.value()
    page.append_text(99, "\n\nmore\n\n" * 30)
    assert bar.value() == at and not page.newest.isHidden()
    page.newest.click()
    assert bar.value() == bar.maximum() and page.following


def test_text_streams_into_a_message_that_is_not_built(page):
    page.set_messages([Line(99, text="Start", state="running"), *lines(200)])
    page.append_text(99, " and more")
    page.verticalScrollBar().setValue(0)
    assert page._views[0].views[0].document.toPlainText() == "Start and more"


def test_reading_is_shown_until_the_first_word(page):
    page.set_messages([Line(1, text="", state="running")])
    page.set_reading(1, Reading(8000, 4224, 1000, 2000.0))
    assert "5,224 of 8,000" in page._views[0].reading.sentence()
    assert "left" in page._views[0].reading.sentence()
    page.append_text(1, "Word")
    assert page._views[0].reading is None


def test_selection_runs_across_blocks_and_messages(page, qtbot):
    page.set_messages([Line(1, text="First line\n\nSecond line"), Line(2, text="Third line")])
    first, last = page._views[0], page._views[1]

    def spot(view, block, x):
        middle = view.views[block].y + view.views[block].height // 2
        return QPoint(view.text_left() + x, middle)

    QTest.mousePress(first, Qt.MouseButton.LeftButton, pos=spot(first, 0, 0))
    end = first.mapFromGlobal(last.mapToGlobal(spot(last, 0, 300)))
    QTest.mouseMove(first, end)
    page.pointer.move(first, _drag(first, end))
    QTest.mouseRelease(first, Qt.MouseButton.LeftButton, pos=end)
    assert page.pointer.selected_text() == "First line\nSecond line\nThird line"
    page.pointer.clear()
    assert page.pointer.selected_text() == ""


def _drag(view, point):
    from PySide6.QtCore import QEvent, QPointF
    from PySide6.QtGui import QMouseEvent

    return QMouseEvent(
        QEvent.Type.MouseMove,
        QPointF(point),
        QPointF(view.mapToGlobal(point)),
        Qt.MouseButton.NoButton,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )


def test_links_are_told_not_opened(page, qtbot):
    page.set_messages([Line(1, text="[a link](https://example.org/x)")])
    view = page._views[0]
    at = QPoint(view.text_left() + 10, view.views[0].y + 10)
    with qtbot.waitSignal(page.link_activated) as caught:
        QTest.mouseClick(view, Qt.MouseButton.LeftButton, pos=at)
    assert caught.args == ["https://example.org/x"]


def test_long_code_scrolls_inside_its_frame(page):
    page.set_messages([Line(1, text="```python\nx = '" + "long " * 60 + "'\n```")])
    block = page._views[0].views[0]
    assert block.scroll_range() > 0 and not block.scrollbar_rect().isEmpty()
    assert block.scroll_by(50) and block.offset == 50
    block.drag_to(10_000)
    assert block.offset == block.scroll_range()


def test_colours_land_on_the_right_letters(page):
    page.set_messages([Line(1, text="```python\ndef f():\n    return '漢𝄞'  # done\n```")])
    line = page._views[0].views[0].document.begin().next()
    units = line.text().encode("utf-16-le")
    parts = [(f.start * 2, (f.start + f.length) * 2) for f in line.layout().formats()]
    words = {units[start:end].decode("utf-16-le") for start, end in parts}
    assert "return" in words and "# done" in words


def test_the_arrow_keys_walk_the_messages(page, qtbot):
    page.set_messages(lines(50))
    page.activateWindow()
    page._views[49].setFocus()
    QTest.keyClick(page._views[49], Qt.Key.Key_Up)
    assert page.attention.message().id == 48
    QTest.keyClick(page._views[48], Qt.Key.Key_Home)
    assert page.attention.message().id == 0
    assert page._views[0].accessibleName().startswith("You: Message 0")


def test_a_failed_answer_shows_its_card_in_place(page, qtbot):
    error = {"kind": "x", "message": "The disk is full: free some space.", "details": "trace"}
    page.set_messages([Line(1, text="Half", state="failed", record={"error": error})])
    card = page._views[0].error
    assert card.sentence.text() == error["message"]
    height = page._views[0].needed_height()
    card.fold.click()
    assert page._views[0].needed_height() > height
    with qtbot.waitSignal(page.action) as caught:
        card.remedy.emit("regenerate")
    assert caught.args[0] == "message.regenerate"


def test_a_very_long_message_opens_piece_by_piece(page, qtbot):
    page.set_messages([Line(1, text="A paragraph of words.\n\n" * 8000)])
    view = page._views[0]
    assert view._pending
    qtbot.waitUntil(lambda: not view._pending, timeout=20_000)
    assert len(view.views) == 8000


def test_messages_that_are_built_while_the_zoom_changes_disturb_nothing(page, monkeypatch):
    restyle = MessageView.restyle

    def restyle_in_slices(view):
        restyle(view)
        view.height_changed.emit()

    monkeypatch.setattr(MessageView, "restyle", restyle_in_slices)
    theme.set_zoom(2.0)
    page.set_messages(lines(400))
    bar = page.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    n_large = page.n_built()
    theme.set_zoom(0.7)
    assert page.n_built() > n_large
