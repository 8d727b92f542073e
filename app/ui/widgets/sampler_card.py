"""One stage of the sampling chain as a card: what it does, its sliders, its numbers."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QEvent, QRectF, Qt, Signal
from PySide6.QtGui import QEnterEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from app.strings import tr
from app.ui.theme import theme
from app.ui.widgets.controls import IconButton, Slider, button, label

# The value at which a parameter has no effect; a sampler is off when its first one is there.
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
TITLES = {
    "penalties": "Penalties",
    "dry": "DRY",
    "top_n_sigma": "Top-n-sigma",
    "top_k": "Top-k",
    "typ_p": "Typical",
    "top_p": "Top-p",
    "min_p": "Min-p",
    "xtc": "XTC",
    "temperature": "Temperature",
    "mirostat": "Mirostat",
    "adaptive_p": "Adaptive-p",
}
PARAMETERS = {
    "repeat_penalty": "Repetition",
    "repeat_last_n": "Look back",
    "presence_penalty": "Presence",
    "frequency_penalty": "Frequency",
    "dry_multiplier": "Strength",
    "dry_base": "Growth",
    "dry_allowed_length": "Allowed length",
    "dry_penalty_last_n": "Look back",
    "xtc_probability": "Probability",
    "xtc_threshold": "Threshold",
    "dynatemp_range": "Range",
    "dynatemp_exponent": "Curve",
    "mirostat_tau": "Surprise",
    "mirostat_eta": "Learning rate",
}


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


class HoverButton(IconButton):
    """An icon that is seen only while the mouse is near or the keyboard is on it."""

    _is_hinted = False

    def set_hinted(self, is_hinted: bool) -> None:
        """Show the icon while the mouse is near."""
        self._is_hinted = is_hinted
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._is_hinted or self.hasFocus():
            super().paintEvent(event)


class SamplerCard(QFrame):
    """A sampler: its title, its first number, and the rest behind a fold.

    Signals:
        changed(str, object): key and value; None means back to the default.
        use_changed(): the stage is in use now, or no longer.
    """

    changed = Signal(str, object)
    use_changed = Signal()

    def __init__(self, sampler: Any, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self.sampler = sampler
        self.title_text = tr(TITLES.get(sampler.name, sampler.name))
        self.setAccessibleName(self.title_text)
        self._is_open = False
        self._was_used: bool | None = None
        self._shows_more = False
        self.rows = [self._row(parameter, i) for i, parameter in enumerate(sampler.parameters)]
        self.title = label(self.title_text, "subheading", self)
        self.source = label("", "secondary", self)
        self.source.setAccessibleName(tr("Where the value comes from"))
        self.help = label(tr(sampler.help), "secondary", self)
        self.help.setWordWrap(True)
        tip = tr("Switch {name} off", name=self.title_text)
        self.off = HoverButton("close", tip, self)
        self.off.setFixedSize(theme.px(20), theme.px(20))
        self.off.clicked.connect(self.switch_off)
        self.more = button(
            tr("More"), "inline", tr("More settings of {name}", name=self.title_text)
        )
        self.more.clicked.connect(self._toggle_more)
        self._arrange()

    def _row(self, parameter: Any, place: int) -> ValueRow:
        title = tr(PARAMETERS.get(parameter.key, self.title_text))
        row = ValueRow(parameter, title if place else self.title_text, self)
        row.changed.connect(self.changed)
        row.changed.connect(self._refresh)
        return row

    def _arrange(self) -> None:
        box = QVBoxLayout(self)
        box.setContentsMargins(theme.px(12), theme.px(7), theme.px(12), theme.px(9))
        box.setSpacing(theme.px(3))
        head = QHBoxLayout()
        head.setSpacing(theme.px(8))
        head.addWidget(self.title)
        head.addSpacing(theme.px(10))
        head.addWidget(self.source)
        head.addStretch(1)
        head.addWidget(self.off)
        head.addWidget(self.rows[0].box)
        box.addLayout(head)
        box.addWidget(self.help)
        box.addWidget(self.rows[0].slider)
        self._extra: list[QWidget] = []
        self._sources = {self.rows[0].parameter.key: self.source}
        for row in self.rows[1:]:
            box.addWidget(self._extra_row(row))
        if self.rows[1:]:
            box.addWidget(self.more, 0, Qt.AlignmentFlag.AlignLeft)
        else:
            self.more.setParent(self)
            self.more.hide()
        self._refresh()

    def _extra_row(self, row: ValueRow) -> QWidget:
        holder = QWidget(self)
        column = QVBoxLayout(holder)
        column.setContentsMargins(0, theme.px(4), 0, 0)
        column.setSpacing(theme.px(2))
        head = QHBoxLayout()
        title = label(tr(PARAMETERS.get(row.parameter.key, row.parameter.key)), "secondary")
        source = label("", "secondary", self)
        source.setAccessibleName(tr("Where the value comes from"))
        self._sources[row.parameter.key] = source
        head.addWidget(title)
        head.addSpacing(theme.px(10))
        head.addWidget(source)
        head.addStretch(1)
        head.addWidget(row.box)
        column.addLayout(head)
        column.addWidget(row.slider)
        self._extra.append(holder)
        return holder

    def show_values(self, values: Mapping[str, Any]) -> None:
        """Show the value of every parameter; nothing is emitted."""
        for row in self.rows:
            row.set_value(values[row.parameter.key])
        self._refresh()

    def show_sources(self, sources: Mapping[str, tuple[str, str]]) -> None:
        """Say where each value comes from, in a word beside it and in words in its tooltip."""
        for row in self.rows:
            key = row.parameter.key
            word, words = sources[key]
            tip = f"{tr(row.parameter.help)}\n{tr('From: {source}', source=words)}"
            row.box.setToolTip(tip)
            row.slider.setToolTip(tip)
            row.slider.setAccessibleDescription(f"{row.box.text()}. {tip}")
            self._sources[key].setText(word)
            self._sources[key].setToolTip(words)

    def is_off(self) -> bool:
        """Tell whether this stage has no effect now."""
        switches = [row for row in self.rows if row.parameter.key in OFF]
        return bool(switches) and all(row.is_off() for row in switches)

    def is_changed(self) -> bool:
        """Tell whether any number differs from its default."""
        return any(row.is_changed() for row in self.rows)

    def is_used(self) -> bool:
        """Tell whether the stage has an effect, or was opened to get one."""
        return self._is_open or not self.is_off()

    def switch_on(self) -> None:
        """Open the card, its first slider ready to be moved."""
        self._is_open = True
        self._refresh()
        self.rows[0].slider.setFocus(Qt.FocusReason.OtherFocusReason)

    def switch_off(self) -> None:
        """Give every number the value that has no effect, and fold the card away."""
        self._is_open = self._shows_more = False
        for row in self.rows:
            if row.parameter.key in OFF and not row.is_off():
                self.changed.emit(row.parameter.key, OFF[row.parameter.key])
        self._refresh()

    def _toggle_more(self) -> None:
        self._shows_more = not self._shows_more
        self._refresh()

    def _refresh(self) -> None:
        self.off.setVisible(any(row.parameter.key in OFF for row in self.rows))
        changed_extra = any(row.is_changed() for row in self.rows[1:])
        for holder in self._extra:
            holder.setVisible(self._shows_more or changed_extra)
        self.more.setVisible(bool(self._extra) and not changed_extra)
        self.more.setText(tr("Less") if self._shows_more else tr("More"))
        used = self.is_used()
        self.setHidden(not used)
        if used != self._was_used:
            self._was_used = used
            self.use_changed.emit()
        self.update()

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self.off.set_hinted(True)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.off.set_hinted(False)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.is_changed():
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("accent"))
            size = theme.px(6)
            middle = self.title.geometry().center().y()
            x = self.title.geometry().right() + theme.px(8)
            painter.drawEllipse(QRectF(x, middle - size / 2 + 1, size, size))
