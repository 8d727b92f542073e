"""The line at the bottom: state of the engine, device, memory, tokens per second."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QProgressBar, QWidget

from app.services.figures import speed
from app.strings import tr
from app.ui.theme import theme
from app.ui.widgets.controls import Sparkline, label

_TOKENS = {
    "empty": "faint",
    "loading": "accent",
    "ready": "good",
    "failed": "bad",
    "busy": "accent",
}


class Lamp(QWidget):
    """A small dot in the colour of a state."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.state = "empty"
        theme.changed.connect(self._restyle)
        self._restyle()

    def _restyle(self) -> None:
        self.setFixedSize(theme.px(10), theme.px(10))

    def set_state(self, state: str) -> None:
        """Show a state: empty, loading, ready, busy or failed."""
        self.state = state
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color(_TOKENS.get(self.state, "faint")))
        size = theme.px(8)
        painter.drawEllipse(QRectF(1, (self.height() - size) / 2, size, size))


class StatusLine(QFrame):
    """What the engine does now, in one line."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("statusBar")
        self.lamp = Lamp(self)
        self.state = label("", "secondary", self)
        self.progress = QProgressBar(self)
        self.progress.setTextVisible(False)
        self.progress.setRange(0, 1000)
        self.progress.setAccessibleName(tr("Progress of opening the model"))
        self.progress.hide()
        self.device = label("", "secondary", self)
        self.memory = label("", "secondary", self)
        self.rate = label("", "secondary", self)
        self.spark = Sparkline(self)
        self.spark.hide()
        self._row = QHBoxLayout(self)
        self._row.addWidget(self.lamp)
        self._row.addWidget(self.state)
        self._row.addWidget(self.progress)
        self._row.addWidget(self.device)
        self._row.addWidget(self.memory)
        self._row.addStretch(1)
        self._row.addWidget(self.rate)
        self._row.addWidget(self.spark)
        theme.changed.connect(self._restyle)
        self._restyle()

    def _restyle(self) -> None:
        self.setFixedHeight(theme.px(30))
        self._row.setContentsMargins(theme.px(14), 0, theme.px(14), 0)
        self._row.setSpacing(theme.px(6))
        self.progress.setFixedWidth(theme.px(150))
        for part in (self.device, self.memory):
            part.setContentsMargins(theme.px(14), 0, 0, 0)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Leave out whole parts where there is no room, the least wanted first."""
        margins, gap = self._row.contentsMargins(), self._row.spacing()
        room = self.width() - margins.left() - margins.right() - self.lamp.width() - gap
        if not self.progress.isHidden():
            room -= self.progress.width() + gap
        for part in (self.state, self.rate, self.spark, self.memory, self.device):
            if part is self.spark and not self.spark.values():
                continue
            needed = max(part.sizeHint().width(), part.minimumWidth()) + gap
            part.setVisible(needed <= room or part is self.state)
            room -= needed

    def set_state(self, state: str, sentence: str) -> None:
        """Show the state of the engine: empty, loading, ready, busy or failed."""
        self.lamp.set_state(state)
        self.state.setText(sentence)
        self.progress.setVisible(state == "loading")
        self._fit()

    def set_progress(self, done: float) -> None:
        """Show how far the load is, 0 to 1."""
        self.progress.setValue(round(1000 * done))

    def set_machine(self, device: str, memory: str) -> None:
        """Show the device and the memory in use."""
        self.device.setText(device)
        self.memory.setText(memory)
        self._fit()

    def add_rate(self, tokens_per_second: float) -> None:
        """Show the present speed and remember it in the sparkline."""
        self.rate.setText(tr("{n} tokens/s", n=speed(tokens_per_second)))
        self.spark.add(tokens_per_second)
        self._fit()
