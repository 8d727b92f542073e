"""The shade that shows where a dragged chat would open: a half of a pane, or all of it."""

from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.ui.theme import theme


class DropShade(QWidget):
    """Lies over the panes while a chat is dragged; the mouse does not see it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def show_on(self, pane: QRect, side: str) -> None:
        """Cover the half of a pane on that side; all of it when `side` is empty."""
        area = QRect(pane)
        if side in ("left", "right"):
            area.setWidth(pane.width() // 2)
        elif side:
            area.setHeight(pane.height() // 2)
        if side == "right":
            area.moveRight(pane.right())
        elif side == "bottom":
            area.moveBottom(pane.bottom())
        self.setGeometry(area)
        self.raise_()
        self.show()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        shade = theme.color("accent")
        painter.setPen(QPen(shade, 2))
        shade.setAlphaF(0.12)
        painter.setBrush(shade)
        gap = theme.px(6)
        box = QRectF(self.rect()).adjusted(gap, gap, -gap, -gap)
        painter.drawRoundedRect(box, theme.px(10), theme.px(10))
