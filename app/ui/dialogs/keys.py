"""The sheet with all keys, made from the table of actions."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QDialog, QFrame, QGridLayout, QScrollArea, QVBoxLayout, QWidget

from app.strings import tr
from app.ui.actions import ACTIONS
from app.ui.theme import theme
from app.ui.widgets.controls import label


class KeysDialog(QDialog):
    """Lists every action that has a key, in its groups."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Keys"))
        inside = QWidget(self)
        inside.setObjectName("scrolled")
        grid = QGridLayout(inside)
        grid.setContentsMargins(theme.px(20), theme.px(16), theme.px(20), theme.px(16))
        grid.setVerticalSpacing(theme.px(6))
        grid.setHorizontalSpacing(theme.px(32))
        group = ""
        for action in sorted((a for a in ACTIONS.values() if a.keys), key=lambda a: a.group):
            if action.group != group:
                group = action.group
                grid.setRowMinimumHeight(grid.rowCount(), theme.px(10))
                grid.addWidget(label(tr(group).upper(), "section"), grid.rowCount() + 1, 0, 1, 2)
            row = grid.rowCount()
            shown = QKeySequence.SequenceFormat.NativeText
            keys = "   ".join(QKeySequence(key).toString(shown) for key in action.keys)
            grid.addWidget(label(tr(action.help)), row, 0)
            grid.addWidget(label(keys, "code"), row, 1, Qt.AlignmentFlag.AlignRight)
        area = QScrollArea(self)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidget(inside)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(area)
        self.resize(theme.px(560), theme.px(620))
