"""A drop-down and a switch that look the same on every system."""

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QCheckBox, QComboBox

from app.ui.theme import theme


class Choice(QComboBox):
    """A combo box with an arrow in the colours of the theme."""

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        pen = QPen(theme.color("soft"), 1.5)
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        painter.setPen(pen)
        x, y, half = self.width() - theme.px(15), self.height() / 2, theme.px(4)
        corners = (QPointF(x - half, y - half / 2), QPointF(x, y + half / 2))
        painter.drawLine(*corners)
        painter.drawLine(corners[1], QPointF(x + half, y - half / 2))


class Switch(QCheckBox):
    """A check box drawn as a switch."""

    def sizeHint(self) -> QSize:
        return QSize(theme.px(36), theme.px(22))

    def hitButton(self, _point: object) -> bool:
        return True

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        height, width = theme.px(18), theme.px(32)
        track = QRectF(1, (self.height() - height) / 2, width, height)
        painter.setPen(Qt.PenStyle.NoPen)
        if self.hasFocus():
            painter.setPen(QPen(theme.color("text"), 1.5))
        painter.setBrush(theme.color("accent" if self.isChecked() else "faint"))
        painter.drawRoundedRect(track, height / 2, height / 2)
        gap = theme.px(2)
        size = height - 2 * gap
        x = track.right() - gap - size if self.isChecked() else track.left() + gap
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("card"))
        painter.drawEllipse(QRectF(x, track.top() + gap, size, size))
