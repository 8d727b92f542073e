"""A layout that puts widgets side by side and goes on in the next line, as words do."""

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget


class FlowLayout(QLayout):
    """Lines of widgets with one gap between them, in pixels, across and down."""

    def __init__(self, parent: QWidget | None = None, gap: int = 6) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self._gap = gap
        self.setContentsMargins(0, 0, 0, 0)

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:  # type: ignore[override]
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:  # type: ignore[override]
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._lay(QRect(0, 0, width, 0), moves=False)

    def sizeHint(self) -> QSize:
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        shown = [item for item in self._items if not item.isEmpty()]
        width = max((item.sizeHint().width() for item in shown), default=0)
        return QSize(width, max((item.sizeHint().height() for item in shown), default=0))

    def setGeometry(self, area: QRect) -> None:
        super().setGeometry(area)
        self._lay(area, moves=True)

    def _lay(self, area: QRect, moves: bool) -> int:
        """Put the widgets into lines as wide as `area`; return the height that they take."""
        x, y, line = area.x(), area.y(), 0
        for item in self._items:
            if item.isEmpty():
                continue
            size = item.sizeHint()
            if x + size.width() > area.x() + area.width() and line:
                x, y, line = area.x(), y + line + self._gap, 0
            if moves:
                item.setGeometry(QRect(x, y, size.width(), size.height()))
            x += size.width() + self._gap
            line = max(line, size.height())
        return y + line - area.y()
