"""A short line at the bottom with at most one way back: deleted — Undo."""

from collections.abc import Callable

from PySide6.QtCore import QPoint, QTimer
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from app.strings import tr
from app.ui.theme import theme
from app.ui.widgets.controls import IconButton, button, label


class Toast(QFrame):
    """Shows one sentence over its parent for some seconds; the newest replaces the last."""

    def __init__(self, above: Callable[[], QWidget], parent: QWidget) -> None:
        """`above` tells over which widget to stand now."""
        super().__init__(parent)
        self.above = above
        self._window = parent
        self.setObjectName("toast")
        self._undo: Callable[[], None] | None = None
        self.sentence = label("", "", self)
        self.undo = button(tr("Undo"), "", tr("Undo"), self)
        self.undo.clicked.connect(self._on_undo)
        self.dismiss = IconButton("close", tr("Dismiss"), self)
        self.dismiss.clicked.connect(self.hide)
        row = QHBoxLayout(self)
        row.setContentsMargins(theme.px(14), theme.px(7), theme.px(8), theme.px(7))
        row.setSpacing(theme.px(10))
        row.addWidget(self.sentence)
        row.addWidget(self.undo)
        row.addWidget(self.dismiss)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self.hide)
        self.hide()

    def say(self, sentence: str, undo: Callable[[], None] | None = None, time_s: float = 6) -> None:
        """Show a sentence; with `undo` for ten seconds with a button that calls it."""
        self._undo = undo
        self.sentence.setText(sentence)
        self.setAccessibleName(sentence)
        self.undo.setVisible(undo is not None)
        self.place()
        self.show()
        self.raise_()
        self._timer.start(round(1000 * (10 if undo else time_s)))

    def place(self) -> None:
        """Stand in the middle just above the widget that must stay free."""
        self.adjustSize()
        below = self.above()
        corner = below.mapTo(self._window, QPoint(0, 0))
        x = corner.x() + (below.width() - self.width()) // 2
        self.move(max(theme.px(8), x), corner.y() - self.height() - theme.px(10))

    def _on_undo(self) -> None:
        self.hide()
        if self._undo is not None:
            self._undo()
