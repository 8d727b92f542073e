"""The stages of a chain as chips with how many candidates each left; one of them is looked at."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QPushButton, QWidget

from app.strings import count, tr
from app.ui.bound import bound
from app.ui.theme import theme
from app.ui.widgets.candidate_row import stage_name
from app.ui.widgets.controls import button
from app.ui.widgets.flow import FlowLayout


class StageChips(QWidget):
    """Chips in the order of the chain, the whole of it first; the arrows walk along them.

    Signals:
        picked(int): the place of a stage, -1 for the whole chain.
    """

    picked = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.chips: list[QPushButton] = []
        self.place = -1
        self._flow = FlowLayout(self, theme.px(4))

    def show_stages(self, stages: Sequence[Any]) -> None:
        """Show stages (name, n_left); the same place is looked at, if there is one."""
        words = [tr("whole chain")]
        words += [f"{stage_name(stage.name)} {count(stage.n_left)}" for stage in stages]
        if words == [chip.text() for chip in self.chips]:
            return
        for chip in self.chips:
            self._flow.removeWidget(chip)
            chip.hide()
            chip.deleteLater()
        self.chips = []
        for at, text in enumerate(words):
            tip = tr("What the whole chain did") if not at else tr("What this stage did alone")
            chip = button(text, "stage", tip, self)
            chip.setAccessibleName(text)
            chip.setCheckable(True)
            chip.installEventFilter(self)
            chip.clicked.connect(bound(self.pick, at - 1))
            chip.show()
            self._flow.addWidget(chip)
            self.chips.append(chip)
        self.place = min(self.place, len(stages) - 1)
        self._mark()
        self.updateGeometry()

    def pick(self, place: int) -> None:
        """Look at a stage, or with -1 at the whole chain."""
        self.place = max(-1, min(place, len(self.chips) - 2))
        self._mark()
        self.picked.emit(self.place)

    def _mark(self) -> None:
        for at, chip in enumerate(self.chips):
            chip.setChecked(at - 1 == self.place)
            is_stop = at - 1 == self.place  # Tab reaches the marked one, arrows the others
            chip.setFocusPolicy(
                Qt.FocusPolicy.StrongFocus if is_stop else Qt.FocusPolicy.ClickFocus
            )

    def eventFilter(self, chip: QObject, event: QEvent) -> bool:
        """Let the arrows pick the neighbour of a chip."""
        if not isinstance(event, QKeyEvent) or event.type() != QEvent.Type.KeyPress:
            return False
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()), 0)
        if step:
            self.pick(self.place + step)
            self.chips[self.place + 1].setFocus()
        return bool(step)
