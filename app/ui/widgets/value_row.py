"""The number of one parameter: slider, box, and a title with a dot when it differs."""

from typing import Any

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QLineEdit, QWidget

from app.strings import tr
from app.ui.theme import theme
from app.ui.widgets.controls import Slider

# The value at which a parameter has no effect; a stage is off when all of its own here are.
OFF = {
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "dry_multiplier": 0.0,
    "top_n_sigma": -1.0,
    "top_k": 0,
    "typical_p": 1.0,
    "top_p": 1.0,
    "min_p": 0.0,
    "xtc_probability": 0.0,
    "mirostat": 0,
    "adaptive_target": -1.0,
}
# The temperature has none, but nobody wants its slider to hide at 1.
NEUTRAL = {**OFF, "temperature": 1.0, "dynatemp_range": 0.0}


def shown(value: float, step: float) -> str:
    """Return a number with as many digits as its step has."""
    if step >= 1 and float(value).is_integer():
        return str(int(value))
    digits = len(f"{step:.6f}".rstrip("0").partition(".")[2])
    return f"{value:.{max(2, digits)}f}"


class ValueRow(QWidget):
    """Slider and number box of one parameter, kept in step.

    Signals:
        changed(str, object): key and value that the person chose; None means the default.
    """

    changed = Signal(str, object)

    def __init__(self, parameter: Any, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.parameter = parameter
        self.value = parameter.default
        low, high = float(parameter.min), float(parameter.max)
        self.slider = Slider(low, high, float(parameter.step), float(parameter.default), self)
        self.slider.setAccessibleName(title)
        self.slider.setToolTip(tr(parameter.help))
        self.box = QLineEdit(self)
        self.box.setObjectName("value")
        self.box.setAccessibleName(tr("{name}, number", name=title))
        self.box.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.box.setToolTip(tr(parameter.help))
        self.slider.moved.connect(self._on_moved)
        self.slider.reset.connect(lambda: self.changed.emit(parameter.key, None))
        self.box.editingFinished.connect(self._on_typed)
        self.set_value(parameter.default)

    def set_value(self, value: float) -> None:
        """Show a value; nothing is emitted."""
        self.value = value
        self.slider.set_number(float(value))
        self.box.setText(shown(value, float(self.parameter.step)))
        self.slider.setAccessibleDescription(f"{self.box.text()}. {tr(self.parameter.help)}")
        metrics = self.box.fontMetrics()
        width = metrics.horizontalAdvance(self.box.text()) + theme.px(22)
        self.box.setFixedWidth(max(theme.px(40), width))

    def is_changed(self) -> bool:
        """Tell whether the value differs from the default."""
        return bool(abs(float(self.value) - float(self.parameter.default)) > 1e-9)

    def is_off(self) -> bool:
        """Tell whether the value has no effect."""
        off = OFF.get(self.parameter.key)
        if self.parameter.key in ("top_n_sigma", "adaptive_target"):
            return self.value <= 0
        return off is not None and abs(float(self.value) - off) < 1e-9

    def _on_moved(self, value: float) -> None:
        whole = isinstance(self.parameter.default, int)
        chosen = round(value) if whole else value
        self.set_value(chosen)
        self.changed.emit(self.parameter.key, chosen)

    def _on_typed(self) -> None:
        text = self.box.text().strip().replace(",", ".")
        try:
            value = float(text)
        except ValueError:
            self.set_value(self.value)
            return
        value = min(float(self.parameter.max), max(float(self.parameter.min), value))
        chosen = round(value) if isinstance(self.parameter.default, int) else value
        if chosen != self.value:
            self.set_value(chosen)
            self.changed.emit(self.parameter.key, chosen)
        else:
            self.set_value(self.value)


class MarkedTitle(QLabel):
    """A title that shows a dot behind it while its value is not the default."""

    def __init__(self, text: str, role: str, parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setObjectName(role)
        self._plain = text
        self.is_marked = False

    def sizeHint(self) -> QSize:
        hint = super().sizeHint()
        return QSize(hint.width() + theme.px(14), hint.height())

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def mark(self, is_marked: bool) -> None:
        """Show the dot, or none."""
        self.is_marked = is_marked
        words = tr("{name}, changed", name=self._plain) if is_marked else self._plain
        self.setAccessibleName(words)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.is_marked:
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("accent"))
            size, text = theme.px(6), self.fontMetrics().horizontalAdvance(self._plain)
            top = (self.height() - size) / 2 + 1
            painter.drawEllipse(QRectF(text + theme.px(7), top, size, size))
