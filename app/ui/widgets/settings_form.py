"""Rows of a form made from the table of settings: label, control, one line of help."""

from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.strings import tr
from app.ui.theme import theme
from app.ui.widgets.choices import Choice, Switch
from app.ui.widgets.controls import label

_CHOICES = {
    "system": "as the system",
    "light": "light",
    "dark": "dark",
    "en": "English",
    "zh_CN": "简体中文",
    "enter": "Enter",
    "shift+enter": "Shift+Enter",
}


class SettingsForm(QWidget):
    """The settings of some groups as a form.

    Signals:
        changed(str, object): key and value that the person chose.
    """

    changed = Signal(str, object)

    def __init__(self, settings: Any, rows: tuple[Any, ...], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("scrolled")
        self.controls: dict[str, QWidget] = {}
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(theme.px(12))
        for row in rows:
            box.addLayout(self._row(row, settings[row.key]))

    def _row(self, row: Any, value: Any) -> QVBoxLayout:
        control = self._control(row, value)
        control.setAccessibleName(tr(row.label))
        control.setAccessibleDescription(tr(row.help))
        control.setToolTip(tr(row.help))
        self.controls[row.key] = control
        lines = QVBoxLayout()
        lines.setSpacing(theme.px(2))
        if isinstance(control, QPlainTextEdit):
            lines.addWidget(label(tr(row.label)))
            lines.addWidget(control)
        else:
            line = QHBoxLayout()
            line.addWidget(label(tr(row.label)), 1)
            line.addWidget(control)
            lines.addLayout(line)
        help_line = label(tr(row.help), "secondary")
        help_line.setWordWrap(True)
        lines.addWidget(help_line)
        return lines

    def _control(self, row: Any, value: Any) -> QWidget:
        if row.type is bool:
            return self._check(row, value)
        if row.type is int:
            return self._spin(row, value)
        if row.type is float:
            return self._decimal(row, value)
        if row.choices:
            return self._combo(row, value)
        return self._lines(row, value) if row.type is list else self._text(row, value)

    def _check(self, row: Any, value: bool) -> QCheckBox:
        made = Switch(self)
        made.setChecked(value)
        made.toggled.connect(lambda on: self.changed.emit(row.key, bool(on)))
        return made

    def _spin(self, row: Any, value: int) -> QSpinBox:
        made = QSpinBox(self)
        made.setRange(int(row.low or 0), int(row.high or 1_000_000))
        made.setSingleStep(int(row.step or 1))
        made.setValue(value)
        made.setKeyboardTracking(False)
        made.setFixedWidth(theme.px(96))
        made.setAlignment(Qt.AlignmentFlag.AlignCenter)
        made.valueChanged.connect(lambda number: self.changed.emit(row.key, int(number)))
        return made

    def _decimal(self, row: Any, value: float) -> QDoubleSpinBox:
        made = QDoubleSpinBox(self)
        made.setRange(row.low or 0.0, row.high or 1.0)
        made.setSingleStep(row.step or 0.1)
        made.setValue(value)
        made.setKeyboardTracking(False)
        made.valueChanged.connect(lambda number: self.changed.emit(row.key, float(number)))
        return made

    def _combo(self, row: Any, value: str) -> QComboBox:
        made = Choice(self)
        for choice in row.choices:
            made.addItem(tr(_CHOICES.get(choice, choice)), choice)
        made.setCurrentIndex(list(row.choices).index(value) if value in row.choices else 0)
        made.currentIndexChanged.connect(
            lambda place: self.changed.emit(row.key, made.itemData(place))
        )
        return made

    def _text(self, row: Any, value: str) -> QLineEdit:
        made = QLineEdit(value, self)
        made.setPlaceholderText(theme.code_face if row.key == "code_font" else "")
        made.setFixedWidth(theme.px(200))
        made.editingFinished.connect(lambda: self.changed.emit(row.key, made.text().strip()))
        return made

    def _lines(self, row: Any, value: list[str]) -> QPlainTextEdit:
        made = QPlainTextEdit("\n".join(value), self)
        made.setObjectName("field")
        made.setFixedHeight(theme.px(70))
        made.setTabChangesFocus(True)
        made.textChanged.connect(
            lambda: self.changed.emit(
                row.key, [line.strip() for line in made.toPlainText().split("\n") if line.strip()]
            )
        )
        return made
