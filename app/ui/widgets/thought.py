"""What a model thought before it answered, folded into one line: Thought for 12 s."""

import time

from PySide6.QtCore import QRect, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QPushButton, QWidget

from app.strings import seconds, tr
from app.ui.theme import theme
from app.ui.widgets.controls import button

_MOST = 260  # height of the open text in design pixels; more of it scrolls


class ThoughtFold(QWidget):
    """A line that opens into the thought; the text is laid out only while it is open.

    Signals:
        resized(): it needs another height.
        answer_wanted(): the thought should end now.
    """

    resized = Signal()
    answer_wanted = Signal()

    def __init__(self, parent: QWidget, duration_s: float = 0.0) -> None:
        super().__init__(parent)
        self._parts: list[str] = []
        self._duration_s = duration_s
        self._started_at = 0.0
        self.is_thinking = False
        self.fold: QPushButton = button("", "inline", tr("Show or hide what it thought"), self)
        self.fold.setCursor(Qt.CursorShape.PointingHandCursor)
        self.fold.clicked.connect(self._toggle)
        words = tr("End the thought and let the answer begin")
        self.answer: QPushButton = button(tr("Answer now"), "stage", words, self)
        self.answer.setCursor(Qt.CursorShape.PointingHandCursor)
        self.answer.clicked.connect(self._on_answer)
        self.answer.hide()
        self.text = QPlainTextEdit(self)
        self.text.setReadOnly(True)
        self.text.setAccessibleName(tr("What the model thought"))
        self.text.setFrameShape(QFrame.Shape.NoFrame)
        self.text.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.text.document().setDocumentMargin(0)
        self.text.setFont(theme.font(13))
        palette = self.text.palette()
        palette.setColor(palette.ColorRole.Text, theme.color("soft"))
        self.text.setPalette(palette)
        self.text.setStyleSheet(f"color: {theme.tokens.soft};")
        self.text.hide()
        self._name()

    def append(self, thought: str) -> None:
        """Take more of the thought."""
        self._parts.append(thought)
        if not self.text.isHidden():
            was = self.text.height()
            cursor = self.text.textCursor()
            cursor.movePosition(cursor.MoveOperation.End)
            cursor.insertText(thought)
            if self._text_height() != was:
                self.resized.emit()
        self._name()

    def set_thinking(self, is_thinking: bool, duration_s: float = 0.0) -> None:
        """Say whether the thought goes on; `duration_s` is how long it took, 0 if unknown."""
        if is_thinking and not self.is_thinking:
            self._started_at = time.monotonic()
        elif self.is_thinking and not is_thinking and not duration_s:
            duration_s = time.monotonic() - self._started_at
        self.is_thinking = is_thinking
        self._duration_s = duration_s or self._duration_s
        self._name()

    def thought(self) -> str:
        """Return the whole thought."""
        return "".join(self._parts)

    def place(self, left: int, top: int, width: int) -> int:
        """Lay out in a column and return the height taken, in pixels."""
        head, inset = theme.px(24), theme.px(12)
        size = self.fold.sizeHint()
        self.fold.setGeometry(QRect(inset, 0, min(width - inset, size.width()), head))
        wide = min(self.answer.sizeHint().width(), max(0, width - self.fold.geometry().right()))
        inner = min(head, self.answer.sizeHint().height())
        beside = self.fold.geometry().right() + theme.px(10)
        self.answer.setGeometry(beside, (head - inner) // 2, wide, inner)
        height = head
        if not self.text.isHidden():
            self.text.setGeometry(inset, head, width - inset, max(1, self.text.height()))
            tall = self._text_height()
            self.text.setGeometry(inset, head, width - inset, tall)
            height += tall + theme.px(4)
        self.setGeometry(left, top, width, height)
        return height

    def _text_height(self) -> int:
        lines = self.text.document().size().height()  # QPlainTextEdit counts in lines
        wanted = round(lines * self.text.fontMetrics().lineSpacing()) + theme.px(6)
        return min(theme.px(_MOST), wanted)

    def _on_answer(self) -> None:
        self.answer.setEnabled(False)  # it takes a token or two
        self.answer_wanted.emit()

    def _toggle(self) -> None:
        opens = self.text.isHidden()
        self.text.setPlainText(self.thought().strip("\n") if opens else "")
        self.text.setVisible(opens)
        self._name()
        self.resized.emit()

    def _name(self) -> None:
        if self.is_thinking:
            words = tr("Thinking…")
        elif self._duration_s >= 0.5:
            words = tr("Thought for {time}", time=seconds(self._duration_s))
        else:
            words = tr("Thought")
        self.answer.setVisible(self.is_thinking)
        arrow = "▸" if self.text.isHidden() else "▾"
        self.fold.setText(f"{words} {arrow}")

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        gap, wide = theme.px(2), theme.px(2)
        painter.fillRect(0, gap, wide, self.height() - 2 * gap, theme.color("line"))
