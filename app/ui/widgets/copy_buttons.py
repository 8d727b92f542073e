"""The Copy buttons in the label lines of a message's code blocks."""

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton, QWidget

from app.strings import tr
from app.ui.widgets.block import BlockView
from app.ui.widgets.framed import CodeView


class CopyButtons:
    """One button for each code block of one message, made when the block is first laid out."""

    def __init__(self, message: QWidget) -> None:
        self._message = message
        self._buttons: dict[int, QPushButton] = {}

    def place(self, view: BlockView, left: int) -> None:
        """Put the button of a block where it belongs; `left` is where the block begins."""
        if not isinstance(view, CodeView):
            return
        button = self._buttons.get(id(view)) or self._make(view)
        right, middle = view.copy_corner()
        size = button.sizeHint()
        x, y = left + right - size.width(), view.y + middle - size.height() // 2
        button.setGeometry(x, y, size.width(), size.height())

    def drop(self, view: BlockView) -> None:
        """Remove the button of a block that is shown no more."""
        button = self._buttons.pop(id(view), None)
        if button is not None:
            button.deleteLater()

    def _make(self, view: CodeView) -> QPushButton:
        button = QPushButton(tr("Copy"), self._message)
        button.setObjectName("quiet")
        button.setAccessibleName(tr("Copy the code"))
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.clicked.connect(lambda _=False, view=view: self._copy(view))
        button.show()
        self._buttons[id(view)] = button
        return button

    def _copy(self, view: CodeView) -> None:
        QGuiApplication.clipboard().setText(view.block.text)
        button = self._buttons[id(view)]
        button.setText(tr("Copied"))
        QTimer.singleShot(1200, button, lambda: button.setText(tr("Copy")))
