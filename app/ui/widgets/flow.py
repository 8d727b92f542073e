"""A layout that puts widgets side by side and goes on in the next line, as words do."""

from PySide6.QtCore import QPoint, QRect, QSize, Qt
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

    def _lines(self, width: int) -> list[list[QLayoutItem]]:
        """Return the items that are shown, line by line."""
        lines: list[list[QLayoutItem]] = [[]]
        taken = 0
        for item in self._items:
            if item.isEmpty():
                continue
            needed = item.sizeHint().width()
            if lines[-1] and taken + needed > width:
                lines.append([])
                taken = 0
            lines[-1].append(item)
            taken += needed + self._gap
        return lines

    def _lay(self, area: QRect, moves: bool) -> int:
        """Put the widgets into lines as wide as `area`; return the height that they take."""
        y = area.y()
        for line in self._lines(area.width()):
            height = max((item.sizeHint().height() for item in line), default=0)
            x = area.x()
            for item in line if moves else ():
                size = item.sizeHint()
                item.setGeometry(QRect(QPoint(x, y + (height - size.height()) // 2), size))
                x += size.width() + self._gap
            y += height + self._gap
        return max(0, y - self._gap - area.y())
