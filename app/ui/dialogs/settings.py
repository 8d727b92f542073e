"""The settings, made from the table of settings, in its groups."""

from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QFrame, QScrollArea, QVBoxLayout, QWidget

from app.settings import SETTINGS
from app.strings import tr
from app.ui.theme import theme
from app.ui.widgets.controls import label
from app.ui.widgets.settings_form import SettingsForm

# Settings of parts that this version does not have yet: a switch that does nothing is no choice.
_WAITING = {"language", "paste_limit", "keep_reasoning"}


class SettingsDialog(QDialog):
    """Every setting that has a page; a change holds at once.

    Signals:
        changed(str, object): key and value that the person chose.
    """

    changed = Signal(str, object)

    def __init__(self, settings: Any, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Settings"))
        inside = QWidget(self)
        inside.setObjectName("scrolled")
        box = QVBoxLayout(inside)
        box.setContentsMargins(theme.px(24), theme.px(18), theme.px(24), theme.px(18))
        box.setSpacing(theme.px(12))
        for group in dict.fromkeys(row.group for row in SETTINGS if row.group):
            box.addWidget(label(tr(group).upper(), "section"))
            rows = tuple(r for r in SETTINGS if r.group == group and r.key not in _WAITING)
            form = SettingsForm(settings, rows, inside)
            form.changed.connect(self.changed)
            box.addWidget(form)
            box.addSpacing(theme.px(10))
        box.addStretch(1)
        area = QScrollArea(self)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidget(inside)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(area)
        self.resize(theme.px(560), theme.px(640))
