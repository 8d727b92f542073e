"""One stage of the sampling chain as a card: what it does, its sliders, its numbers."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QEvent, QPointF, Qt, Signal
from PySide6.QtGui import QEnterEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.strings import tr
from app.ui.theme import theme
from app.ui.widgets.controls import ElidedLabel, IconButton, button, label
from app.ui.widgets.value_row import NEUTRAL, OFF, MarkedTitle, ValueRow

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
        self.title = MarkedTitle(self.title_text, "subheading", self)
        self.can_move = False
        self.source = ElidedLabel("", "secondary", self)
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
        row.changed.connect(self._on_moved)
        row.changed.connect(self.changed)
        row.changed.connect(self._refresh)
        return row

    def _arrange(self) -> None:
        box = QVBoxLayout(self)
        box.setContentsMargins(theme.px(12), theme.px(7), theme.px(12), theme.px(9))
        box.setSpacing(theme.px(3))
        head = QHBoxLayout()
        head.setSpacing(theme.px(4))
        head.addWidget(self.title)
        head.addWidget(self.source, 1)
        head.addWidget(self.off)
        head.addWidget(self.rows[0].box)
        box.addLayout(head)
        box.addWidget(self.help)
        box.addWidget(self.rows[0].slider)
        self._extra: list[QWidget] = []
        self._sources = {self.rows[0].parameter.key: self.source}
        self._titles: list[tuple[MarkedTitle, ValueRow]] = []
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
        head.setSpacing(theme.px(4))
        title = MarkedTitle(tr(PARAMETERS.get(row.parameter.key, row.parameter.key)), "name", self)
        self._titles.append((title, row))
        help = label(tr(row.parameter.help), "secondary", self)
        help.setWordWrap(True)
        source = ElidedLabel("", "secondary", self)
        self._sources[row.parameter.key] = source
        head.addWidget(title)
        head.addWidget(source, 1)
        head.addWidget(row.box)
        column.addLayout(head)
        column.addWidget(help)
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
            self._sources[key].set_text(word)
            self._sources[key].setToolTip(words)
            self._sources[key].setAccessibleName(tr("From: {source}", source=words))

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
        for row in self.rows:
            neutral = NEUTRAL.get(row.parameter.key)
            if neutral is not None and row.value != neutral and not row.is_off():
                self.changed.emit(row.parameter.key, neutral)
        self.fold()

    def fold(self) -> None:
        """Fold the card away if it has no effect."""
        self._is_open = self._shows_more = False
        self._refresh()

    def _on_moved(self) -> None:
        self._is_open = True  # a slider does not vanish under the hand that moves it

    def _toggle_more(self) -> None:
        self._shows_more = not self._shows_more
        self._refresh()

    def _refresh(self) -> None:
        self.off.setVisible(any(row.parameter.key in NEUTRAL for row in self.rows))
        changed_extra = any(row.is_changed() for row in self.rows[1:])
        for holder in self._extra:
            holder.setVisible(self._shows_more or changed_extra)
        self.more.setVisible(bool(self._extra) and not changed_extra)
        self.more.setText(tr("Less") if self._shows_more else tr("More"))
        self.title.mark(self.is_changed())
        for title, row in self._titles:
            title.mark(row.is_changed())
        used = self.is_used()
        self.setHidden(not used)
        if used != self._was_used:
            self._was_used = used
            self.use_changed.emit()
        self.update()

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self.off.set_hinted(True)
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.off.set_hinted(False)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.can_move:
            self._paint_grip(QPainter(self))

    def _paint_grip(self, painter: QPainter) -> None:
        """Draw six points left of the title: the card can be dragged by them."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("soft" if self.underMouse() else "faint"))
        gap, middle = theme.px(3), self.title.geometry().center().y() + 1
        for column in (0, 1):
            for line in (-1, 0, 1):
                point = QPointF(theme.px(4) + column * gap, middle + line * gap)
                painter.drawEllipse(point, 0.9, 0.9)
