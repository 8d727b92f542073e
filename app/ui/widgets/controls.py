"""Small controls of our own: icon buttons, slider, context ring, sparkline, elided label."""

from collections import deque
from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFontMetrics,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QLabel,
    QPushButton,
    QSizePolicy,
    QSlider,
    QToolButton,
    QWidget,
)

from app.ui.actions import ACTIONS
from app.ui.icons import icon
from app.ui.theme import theme


class IconButton(QToolButton):
    """A quiet button with a line icon that follows the theme."""

    def __init__(self, name: str, label: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name = name
        self.setAccessibleName(label)
        self.setToolTip(label)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        theme.changed.connect(self._restyle)
        self._restyle()

    def set_icon(self, name: str) -> None:
        """Show another icon."""
        self._name = name
        self._restyle()

    def _restyle(self) -> None:
        size = theme.px(17)
        self.setIcon(icon(self._name, theme.tokens.soft, size))
        self.setIconSize(QSize(size, size))


def action_button(key: str, icon_name: str, parent: QWidget | None = None) -> IconButton:
    """Return an icon button for an action of the table, with its tooltip and name."""
    return IconButton(icon_name, ACTIONS[key].tip(), parent)


def label(text: str, role: str = "", parent: QWidget | None = None) -> QLabel:
    """Return a label in one of the roles of the stylesheet: title, secondary, section, heading."""
    made = QLabel(text, parent)
    made.setTextFormat(Qt.TextFormat.PlainText)
    if role:
        made.setObjectName(role)
    return made


def button(text: str, role: str = "", tip: str = "", parent: QWidget | None = None) -> QPushButton:
    """Return a push button in one of the roles of the stylesheet: primary, quiet, chip, preset."""
    made = QPushButton(text, parent)
    if role:
        made.setObjectName(role)
    made.setAccessibleName(tip or text)
    made.setToolTip(tip)
    return made


class ElidedLabel(QLabel):
    """A label that shortens its text with … instead of widening the window.

    Signals:
        double_clicked(): somebody wants to change the text.
    """

    double_clicked = Signal()

    def __init__(self, text: str = "", role: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        if role:
            self.setObjectName(role)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        self.setMinimumWidth(theme.px(40))
        self._full = ""
        self.set_text(text)

    def set_text(self, text: str) -> None:
        """Show another text."""
        self._full = text
        self.setAccessibleName(text)
        self.setToolTip(text)
        self.updateGeometry()
        self._elide()

    def full_text(self) -> str:
        """Return the text as it was set."""
        return self._full

    def sizeHint(self) -> QSize:
        hint = super().sizeHint()
        width = QFontMetrics(self.font()).horizontalAdvance(self._full) + theme.px(4)
        return QSize(width, hint.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.double_clicked.emit()

    def _elide(self) -> None:
        metrics = QFontMetrics(self.font())
        room = max(theme.px(40), self.width())
        super().setText(metrics.elidedText(self._full, Qt.TextElideMode.ElideRight, room))


class ElidedButton(QPushButton):
    """A button that shortens its text with … where there is no room for all of it."""

    def __init__(self, role: str, tip: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(role)
        self.setToolTip(tip)
        self._tip, self._full = tip, ""
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def set_text(self, text: str) -> None:
        """Show another text."""
        self._full = text
        self.setToolTip(f"{text}\n{self._tip}")
        self.setAccessibleName(f"{text}. {self._tip}")
        self.updateGeometry()
        self._elide()

    def full_text(self) -> str:
        """Return the text as it was set."""
        return self._full

    def _edges(self) -> int:
        return 2 * theme.px(10) + 4  # the padding and the border of a chip

    def sizeHint(self) -> QSize:
        self.ensurePolished()
        width = self.fontMetrics().horizontalAdvance(self._full) + self._edges()
        return QSize(width, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        holder = self.parentWidget()
        share = round((holder.width() if holder is not None else 0) * 0.3)
        whole = self.sizeHint()
        return QSize(min(whole.width(), max(theme.px(48), share)), whole.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        self.ensurePolished()
        room = self.width() - self._edges() + 1
        shown = self.fontMetrics().elidedText(self._full, Qt.TextElideMode.ElideRight, room)
        if shown != self.text():
            self.setText(shown)


class Slider(QSlider):
    """A horizontal slider over numbers, with the default marked; double click resets.

    Signals:
        moved(float): the person chose another number.
        reset(): the person wants the default back.
    """

    moved = Signal(float)
    reset = Signal()

    def __init__(
        self, low: float, high: float, step: float, default: float, parent: QWidget | None = None
    ) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self.low, self.high, self.step = low, high, step
        self.default, self.number = default, default
        self.setRange(0, round((high - low) / step))
        self.setPageStep(10)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMinimumHeight(theme.px(18))
        self.valueChanged.connect(self._on_value_changed)

    def set_number(self, number: float) -> None:
        """Show a number; nothing is emitted. One outside the range stands at its end."""
        self.number = number
        self.blockSignals(True)
        self.setValue(round((number - self.low) / self.step))
        self.blockSignals(False)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(theme.px(160), theme.px(18))

    def _on_value_changed(self, place: int) -> None:
        number = min(self.high, round(self.low + place * self.step, 6))
        if number != self.number:
            self.number = number
            self.moved.emit(number)

    def _x(self, number: float) -> float:
        radius = theme.px(8)
        part = (min(self.high, max(self.low, number)) - self.low) / (self.high - self.low)
        return radius + part * (self.width() - 2 * radius)

    def _go_to(self, x: float) -> None:
        radius = theme.px(8)
        part = (x - radius) / max(1, self.width() - 2 * radius)
        self.setValue(round(min(1.0, max(0.0, part)) * self.maximum()))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        middle, thick = self.height() / 2, theme.px(4)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("line"))
        painter.drawRoundedRect(QRectF(0, middle - thick / 2, self.width(), thick), 2, 2)
        accent = theme.color("accent" if self.isEnabled() else "faint")
        painter.setBrush(accent)
        x = self._x(self.number)
        painter.drawRoundedRect(QRectF(0, middle - thick / 2, x, thick), 2, 2)
        mark = round(self._x(self.default)) - 1  # on whole pixels, so that it is crisp
        painter.setBrush(theme.color("soft"))
        painter.drawRect(QRectF(mark, round(middle + thick / 2) + 2, 2, theme.px(4)))
        radius = theme.px(7)
        painter.setBrush(theme.color("card"))
        painter.setPen(QPen(accent, 2 if not self.hasFocus() else 3))
        painter.drawEllipse(QPointF(x, middle), radius, radius)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._go_to(event.position().x())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._go_to(event.position().x())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.reset.emit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Only a focused slider moves with the wheel, so that scrolling the panel is safe."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.reset.emit()
        else:
            super().keyPressEvent(event)


class ContextRing(QWidget):
    """How full the context is, as a ring."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.part = 0.0
        theme.changed.connect(self._restyle)
        self._restyle()

    def _restyle(self) -> None:
        self.setFixedSize(theme.px(22), theme.px(22))

    def set_usage(self, part: float, sentence: str) -> None:
        """Show the used share, 0 to 1, and say it in words."""
        self.part = min(1.0, max(0.0, part))
        self.setToolTip(sentence)
        self.setAccessibleName(sentence)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        thick = theme.px(4)
        box = QRectF(self.rect()).adjusted(thick / 2, thick / 2, -thick / 2, -thick / 2)
        painter.setPen(QPen(theme.color("line"), thick))
        painter.drawEllipse(box)
        pen = QPen(theme.color("accent"), thick)
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        painter.setPen(pen)
        if self.part > 0.003:
            painter.drawArc(box, 90 * 16, -round(360 * 16 * self.part))


class Sparkline(QWidget):
    """The last speeds as small bars."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._values: deque[float] = deque(maxlen=16)
        self.setAccessibleName("")
        theme.changed.connect(self._restyle)
        self._restyle()

    def _restyle(self) -> None:
        self.setFixedSize(theme.px(16 * 4), theme.px(14))

    def add(self, value: float) -> None:
        """Show one more value at the right."""
        self._values.append(value)
        self.update()

    def values(self) -> Sequence[float]:
        """Return the values on show, the oldest first."""
        return tuple(self._values)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        top = max(self._values, default=0.0) or 1.0
        step = self.width() / 16
        for i, value in enumerate(self._values):
            height = max(1.0, value / top * self.height())
            x = (16 - len(self._values) + i) * step
            bar = QRectF(x, self.height() - height, step - 1, height)
            painter.fillRect(bar, theme.color("faint" if i < len(self._values) - 1 else "accent"))
