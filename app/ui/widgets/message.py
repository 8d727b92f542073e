"""One message, streaming or finished: its blocks, its bubble, its progress and its error."""

import time
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QPoint, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QEnterEvent,
    QFocusEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QPushButton, QWidget

from app.services.reasoning import CLOSE, OPEN, ReasoningStream
from app.strings import count, tr
from app.ui.markdown import MarkdownStream, plain_blocks
from app.ui.theme import theme
from app.ui.widgets.block import BlockView, make_view
from app.ui.widgets.bubble import bubble
from app.ui.widgets.controls import button
from app.ui.widgets.copy_buttons import CopyButtons
from app.ui.widgets.error_card import ErrorCard
from app.ui.widgets.reading import HEIGHT, Reading
from app.ui.widgets.thought import ThoughtFold

if TYPE_CHECKING:
    from app.ui.widgets.pointer import Pointer

_SLICE = 16_000  # characters read at once, so that a very long message opens piece by piece
_BUDGET_S = 0.03
_FOLD_OWN = 6000  # characters of an own message above which only its beginning is shown
# Design pixels: above the content; below it, where the row of actions has its place.
_ABOVE, _BELOW_OWN, _BELOW_ANSWER = 6, 24, 28
NOTICES = {
    "interrupted": "The last answer was interrupted; this is as far as it got.",
    "cancelled": "Stopped.",
    "model": "Stopped: another model was opened.",
}


class MessageView(QWidget):
    """A message on the page. The transcript gives it a place and asks for its height.

    Signals:
        height_changed(): content grew or shrank outside of `append`.
        remedy(str): a remedy of the error card was chosen, or that the thought should end.
        focused(), hovered(): the message took the keyboard focus, the mouse came over it.
        menu_wanted(QPoint): a right click, or the menu key, at a global point.
    """

    height_changed = Signal()
    remedy = Signal(str)
    focused = Signal()
    hovered = Signal()
    menu_wanted = Signal(QPoint)

    def __init__(self, message: Any, pointer: "Pointer", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.message = message
        self.pointer = pointer
        self.views: list[BlockView] = []
        self.reading: Reading | None = None
        self.error: ErrorCard | None = None
        self.thought: ThoughtFold | None = None
        self.rest: QPushButton | None = None
        self._shows_all = False
        self._reasoning = ReasoningStream()
        self._stream = MarkdownStream()
        self._n_settled = 0
        self._pending = ""
        self._left, self._column = 0, 0
        self._copying = CopyButtons(self)
        self._content_height = 0
        self._bubble = QRectF()
        self._marked = False
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self._load()

    # ------------------------------------------------------------ content

    def is_own(self) -> bool:
        """Tell whether a person wrote it."""
        return bool(self.message.role == "user")

    def is_running(self) -> bool:
        """Tell whether it is still being written."""
        return bool(self.message.state == "running")

    def append(self, text: str) -> None:
        """Add streamed text; the transcript asks for the height afterwards."""
        self.reading = None
        thought, said = self._reasoning.feed(text)
        self._show_thought(thought)
        if self._pending:
            self._pending += said
            return
        self._stream.feed(said)
        self._sync()

    def update_message(self, message: Any) -> None:
        """Show a changed record: another state, a final text, an error."""
        was_running = self.is_running()
        self.message = message
        if self.is_running() and not was_running:  # it is continued: its end is open again
            self.restyle()
        if was_running and not self.is_running():
            thought, said = self._reasoning.finish()
            self._show_thought(thought)
            self._pending += said if self._pending else ""
            if not self._pending:
                self._stream.feed(said)
                self._stream.finish()
                self._sync()
        self.reading = self.reading if self.is_running() else None
        self._show_error()
        self._name()
        self._layout()
        self.update()

    def set_reading(self, reading: Reading | None) -> None:
        """Show how far the prompt is read, before the first word."""
        had = self.reading is not None
        self.reading = reading
        if had != (reading is not None):
            self._layout()
            self.height_changed.emit()
        self.update()

    def restyle(self) -> None:
        """Build everything again, after the theme or the zoom changed."""
        for view in self.views:
            self._copying.drop(view)
        self.views = []
        self._stream, self._n_settled = MarkdownStream(), 0
        if self.thought is not None:
            self.thought.deleteLater()
            self.thought = None
        self._load()

    def _load(self) -> None:
        if self.is_own():
            self._show_own()
        else:
            self._begin()
            self._read_on()
        self._show_error()
        self._name()

    def _read_on(self) -> None:
        """Read the text in slices until the time is up; the rest follows when idle."""
        deadline = time.monotonic() + _BUDGET_S
        while self._pending:
            part, self._pending = self._pending[:_SLICE], self._pending[_SLICE:]
            self._stream.feed(part)
            if time.monotonic() > deadline and self._pending:
                QTimer.singleShot(0, self, self._read_on)
                break
        if not self._pending and not self.is_running():
            self._stream.finish()
        self._sync()
        if self._column:
            self.height_changed.emit()

    def _sync(self) -> None:
        """Bring the views up to the stream: settled ones stay, open ones are replaced."""
        wanted = self._stream.frozen[self._n_settled :] + self._stream.open
        for i, block in enumerate(wanted, start=self._n_settled):
            if i < len(self.views) and self.views[i].replace(block):
                continue
            view = make_view(block)
            if i < len(self.views):
                self._copying.drop(self.views[i])
                self.views[i] = view
            else:
                self.views.append(view)
        for view in self.views[self._n_settled + len(wanted) :]:
            self._copying.drop(view)
        del self.views[self._n_settled + len(wanted) :]
        changed, self._n_settled = self._n_settled, len(self._stream.frozen)
        if self._column:
            self._layout(changed)
            top = self.views[changed].y if changed < len(self.views) else 0
            self.update(0, top - 2, self.width(), self.height() - top + 2)

    def _show_own(self) -> None:
        """Show what a person wrote; of a very long text the beginning, the rest when asked for."""
        text = self.message.text
        is_folded = len(text) > _FOLD_OWN and not self._shows_all
        shown = text[: _FOLD_OWN // 2].rstrip() + " …" if is_folded else text
        self.views = [make_view(block) for block in plain_blocks(shown)]
        if self.rest is None and is_folded:
            words = tr("Show all {n} characters", n=count(len(text)))
            self.rest = button(words, "inline", words, self)
            self.rest.clicked.connect(self.show_all)
        if self.rest is not None:
            self.rest.setVisible(is_folded)

    def show_all(self) -> None:
        """Show the whole of a very long message."""
        if self.rest is not None and not self._shows_all:
            self._shows_all = True
            self.restyle()
            self._layout()
            self.height_changed.emit()

    def _begin(self) -> None:
        """Tell thought and answer apart in what there is of the text."""
        text = self.message.text
        if CLOSE in text and not text.lstrip().startswith(OPEN):
            text = OPEN + text  # the template had begun the thought
        self._reasoning = ReasoningStream()
        thought, self._pending = self._reasoning.feed(text)
        if not self.is_running():
            last_thought, last_said = self._reasoning.finish()
            thought, self._pending = thought + last_thought, self._pending + last_said
        self._show_thought(thought)

    def has_stray_end(self, text: str) -> bool:
        """Tell whether `text` ends a thought that the template began: all before it was one."""
        return CLOSE in text and not self._reasoning.has_thought and not self.is_own()

    def _show_thought(self, thought: str) -> None:
        """Fold what the model thought into a line above the answer."""
        known = float(self.message.record.get("thought_s", 0.0))
        if self.thought is None and (thought or self._reasoning.has_thought):
            self.thought = ThoughtFold(self, known)
            self.thought.resized.connect(self._on_thought_resized)
            self.thought.answer_wanted.connect(lambda: self.remedy.emit("answer_now"))
            self.thought.show()
        if self.thought is not None:
            if thought:
                self.thought.append(thought)
            self.thought.set_thinking(self._reasoning.is_thinking, known)

    def _on_thought_resized(self) -> None:
        self._layout()
        self.height_changed.emit()
        self.update()

    def _name(self) -> None:
        who = tr("You") if self.is_own() else tr("Answer")
        self.setAccessibleName(f"{who}: {self.message.text[:4000]}")
        self.setAccessibleDescription(tr("Press Tab for the actions of this message."))

    def _show_error(self) -> None:
        error = self.message.record.get("error") if self.message.state == "failed" else None
        if self.error is not None:
            self.error.deleteLater()
            self.error = None
        if error:
            remedies = (("regenerate", tr("Try again")),)
            self.error = ErrorCard(error["message"], error.get("details", ""), remedies, self)
            self.error.remedy.connect(self.remedy)
            self.error.resized.connect(self.height_changed)
            self.error.resized.connect(self._layout)
            self.error.show()

    # ------------------------------------------------------------ layout

    def set_column(self, left: int, width: int) -> int:
        """Lay out in a column and return the height that the message needs, in pixels."""
        if (left, width) != (self._left, self._column):
            self._left, self._column = left, width
            self._layout()
        return self._content_height

    def needed_height(self) -> int:
        """Return the height for the column set last, in pixels."""
        return self._content_height

    def actions_top(self) -> int:
        """Return where the row of actions belongs, in pixels from the top."""
        below = _BELOW_OWN if self.is_own() else _BELOW_ANSWER
        return self._content_height - theme.px(below - 2)

    def _layout(self, first: int = 0) -> None:
        if not self._column:
            return
        top = theme.px(_ABOVE)
        if self.thought is not None:
            top += self.thought.place(self._left, top, self._column) + theme.px(6)
        width = self._column
        x_pad, y_pad = (theme.px(13), theme.px(9)) if self.is_own() else (0, 0)
        if self.is_own():
            limit = round(self._column * 0.85) - 2 * x_pad
            for view in self.views:
                view.set_width(limit)
            natural = max([view.natural_width() for view in self.views], default=0)
            width = min(limit, max(natural, theme.px(24)))
        bottom = top + y_pad
        for i, view in enumerate(self.views):
            if i >= first:
                view.set_width(width)
                gap = 0 if i == 0 else view.space_above(self.views[i - 1].block)
                view.y = bottom + gap
                self._copying.place(view, self.text_left())
            bottom = view.y + view.height
        if self.rest is not None and not self._shows_all:
            size = self.rest.sizeHint()
            left = self._left + self._column - width - x_pad
            self.rest.setGeometry(left, bottom + theme.px(4), size.width(), size.height())
            bottom += size.height() + theme.px(4)
        bottom += y_pad
        if self.is_own():
            left = self._left + self._column - width - 2 * x_pad
            self._bubble = QRectF(left, top, width + 2 * x_pad, bottom - top)
        below = _BELOW_OWN if self.is_own() else _BELOW_ANSWER
        self._content_height = self._below(bottom) + theme.px(below)

    def _below(self, bottom: int) -> int:
        """Return the bottom edge of what follows the text: progress, notice, error."""
        if self.reading is not None and not self.views:
            return bottom + theme.px(HEIGHT)
        if self._notice():
            bottom += theme.px(26)
        if self.error is not None:
            self.error.setFixedWidth(self._column)
            height = self.error.height_for(self._column)
            self.error.setGeometry(self._left, bottom + theme.px(8), self._column, height)
            bottom += height + theme.px(8)
        return bottom

    def _notice(self) -> str:
        is_cut = self.message.state == "cancelled" and self.message.record.get("cut_by")
        notice = NOTICES.get(str(is_cut or self.message.state), "")
        return tr(notice) if notice and not self.is_own() else ""

    def text_left(self) -> int:
        """Return the left edge of the text, in pixels."""
        return round(self._bubble.left()) + theme.px(13) if self.is_own() else self._left

    # ------------------------------------------------------------ paint

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = event.rect()
        if self.is_own():
            painter.fillPath(bubble(self._bubble), theme.color("own"))
        left = self.text_left()
        for view in self.views:
            if view.y + view.height < area.top() or view.y > area.bottom():
                continue
            painter.save()
            painter.translate(left, view.y)
            view.paint(painter, QRectF(area.translated(-left, -view.y)))
            painter.restore()
        if self.reading is not None and not self.views:
            self.reading.paint(painter, self._left, self._content_top(), self._column)
        elif self.is_running() and self.views:
            self._paint_caret(painter)
        if self._notice():
            painter.setFont(theme.font(12.5))
            painter.setPen(theme.color("soft"))
            last = self.views[-1] if self.views else None
            bottom = last.y + last.height if last else self._content_top()
            painter.drawText(self._left, bottom + theme.px(22), self._notice())
        if self.hasFocus() and self._marked:
            self._paint_focus(painter)

    def _content_top(self) -> int:
        """Return where the text begins, below a thought, in pixels."""
        return theme.px(_ABOVE) + (self.thought.height() + theme.px(6) if self.thought else 0)

    def _paint_caret(self, painter: QPainter) -> None:
        view = self.views[-1]
        if view.block.kind in ("code", "table", "rule"):
            return
        caret = view.end_point()
        box = QRectF(
            self.text_left() + caret.x() + theme.px(2),
            view.y + caret.y() + theme.px(2),
            theme.px(7),
            max(theme.px(10), caret.height() - theme.px(4)),
        )
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("accent"))
        painter.drawRoundedRect(box, 1.5, 1.5)

    def _paint_focus(self, painter: QPainter) -> None:
        painter.setPen(theme.color("accent"))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        left = self._left - theme.px(10)
        bar = QRectF(left, theme.px(8), theme.px(2), self._content_height - theme.px(36))
        painter.fillRect(bar, theme.color("accent"))

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        mouse = event.reason() == Qt.FocusReason.MouseFocusReason
        self._marked = not mouse and event.reason() != Qt.FocusReason.ActiveWindowFocusReason
        self.focused.emit()
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    # ------------------------------------------------------------ the mouse

    def view_at(self, point: QPoint) -> tuple[int, float, float]:
        """Return (index of the block under or nearest to a point, x, y inside it); -1 if empty."""
        if not self.views:
            return -1, 0.0, 0.0
        index = 0
        for i, view in enumerate(self.views):
            if point.y() >= view.y:
                index = i
        view = self.views[index]
        return index, point.x() - self.text_left(), point.y() - view.y

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.pointer.press(self, event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.pointer.move(self, event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self.pointer.release(self, event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.pointer.double_click(self, event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        self.pointer.wheel(self, event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.menu_wanted.emit(event.globalPos())

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self.hovered.emit()
