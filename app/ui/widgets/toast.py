"""A short line at the bottom with at most one way back: deleted — Undo."""

from collections.abc import Callable

from PySide6.QtCore import QPoint, QTimer
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from app.strings import tr
from app.ui.theme import theme
from app.ui.widgets.controls import IconButton, button, label

_WIDEST = 720  # of a sentence on one line, in design pixels


class Toast(QFrame):
    """Shows one sentence over its parent for some seconds; the newest replaces the last.

    What must be read stays until it is dismissed, and comes back after what replaced it.
    """

    def __init__(self, beside: Callable[[], QWidget], parent: QWidget) -> None:
        """`beside` tells below which widget to stand now, or above it without room there."""
        super().__init__(parent)
        self.beside = beside
        self._lasting = ""
        self._window = parent
        self.setObjectName("toast")
        self._undo: Callable[[], None] | None = None
        self.sentence = label("", "", self)
        self.sentence.setWordWrap(True)
        self.undo = button(tr("Undo"), "", tr("Undo"), self)
        self.undo.clicked.connect(self._on_undo)
        self.dismiss = IconButton("close", tr("Dismiss"), self)
        self.dismiss.clicked.connect(self._on_dismiss)
        row = QHBoxLayout(self)
        row.setContentsMargins(theme.px(14), theme.px(5), theme.px(8), theme.px(5))
        row.setSpacing(theme.px(10))
        row.addWidget(self.sentence)
        row.addWidget(self.undo)
        row.addWidget(self.dismiss)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._end)
        self.hide()

    def say(self, sentence: str, undo: Callable[[], None] | None = None, time_s: float = 6) -> None:
        """Show a sentence; with `undo` for ten seconds with a button that calls it.

        With a `time_s` of 0 it stays until it is dismissed.
        """
        self._lasting = self._lasting if undo or time_s else sentence
        self._undo = undo
        self.sentence.setText(sentence)
        self.setAccessibleName(sentence)
        self.undo.setVisible(undo is not None)
        self.place()
        self.show()
        self.raise_()
        if undo or time_s:
            self._timer.start(round(1000 * (10 if undo else time_s)))
        else:
            self._timer.stop()

    def end(self, sentence: str) -> None:
        """Take a sentence away that holds no longer, if it is on show."""
        if sentence and self.sentence.text() == sentence and not self.isHidden():
            self._end()

    def place(self) -> None:
        """Stand where nothing is covered that can be used: at the bottom, over the status line."""
        room = self._window.width() - theme.px(16)
        wanted = self.sentence.fontMetrics().horizontalAdvance(self.sentence.text()) + 2
        self.sentence.setFixedWidth(min(wanted, theme.px(_WIDEST), room - theme.px(120)))
        self.adjustSize()
        box = self.beside()
        corner = box.mapTo(self._window, QPoint(0, 0))
        x = corner.x() + (box.width() - self.width()) // 2
        x = max(theme.px(8), min(x, self._window.width() - self.width() - theme.px(8)))
        y = self._window.height() - self.height() - 1
        above = corner.y() - self.height() - theme.px(10)
        is_free = corner.y() + box.height() <= y
        self.move(x, y if is_free else max(0, above))

    def _on_undo(self) -> None:
        undo = self._undo
        self._end()
        if undo is not None:
            undo()

    def _on_dismiss(self) -> None:
        if self.sentence.text() == self._lasting:
            self._lasting = ""
        self._end()

    def _end(self) -> None:
        self.hide()
        if self._lasting:
            self.say(self._lasting, time_s=0)
