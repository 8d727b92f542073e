"""The presets above the chain: those that ship as buttons, others and levels in a menu."""

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QGridLayout, QMenu, QPushButton, QWidget

from app.strings import tr
from app.ui.bound import bound
from app.ui.theme import theme
from app.ui.widgets.controls import button

_COLUMNS = 3


class PresetRow(QWidget):
    """Offers presets (id, name, sampling, help, is_shipped).

    Signals:
        chosen(object): all values of a preset should hold.
        save_wanted(): the present values should become a preset.
        neutral_wanted(): no sampler should have an effect.
        reset_wanted(): every value should be the engine's own.
        deletion_wanted(object): a preset of the person's own should go.
        level_chosen(str, str): new chats, "everywhere" or with this "model", begin with the
            preset of that id; "" is none.
    """

    chosen = Signal(object)
    save_wanted = Signal()
    neutral_wanted = Signal()
    reset_wanted = Signal()
    deletion_wanted = Signal(object)
    level_chosen = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._presets: Sequence[Any] = ()
        self._levels: Mapping[str, str] = {}
        self.buttons: dict[str, QPushButton] = {}
        self.mine = button(tr("Mine ▾"), "preset", tr("My presets"), self)
        self.mine.clicked.connect(self._open_mine)
        self.neutral = button(tr("Neutralize"), "preset", tr("Let no sampler have an effect"), self)
        self.neutral.clicked.connect(self.neutral_wanted)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(theme.px(6))

    def set_presets(self, presets: Sequence[Any]) -> None:
        """Offer these presets; one without values stands there, but cannot be chosen."""
        if self.buttons and list(presets) == list(self._presets):
            return  # whoever has the keyboard on a button keeps it
        self._presets = presets
        for shown in self.buttons.values():
            self._grid.removeWidget(shown)
            shown.hide()
            shown.deleteLater()
        for shown in (self.mine, self.neutral):
            self._grid.removeWidget(shown)
        self.buttons = {}
        for preset in (p for p in presets if p.is_shipped):
            made = button(tr(preset.name), "preset", tr(preset.help) or tr(preset.name), self)
            made.setCheckable(True)
            made.clicked.connect(bound(self.chosen.emit, preset))
            if not preset.sampling:
                made.setEnabled(False)
                made.setToolTip(tr("The file of this model recommends no values."))
            self.buttons[preset.id] = made
        for place, shown in enumerate([*self.buttons.values(), self.mine, self.neutral]):
            self._grid.addWidget(shown, place // _COLUMNS, place % _COLUMNS)

    def mark(self, in_force: Sequence[str]) -> None:
        """Show which presets (ids) hold now."""
        for preset_id, shown in self.buttons.items():
            shown.setChecked(preset_id in in_force)

    def set_levels(self, levels: Mapping[str, str]) -> None:
        """Know the preset of each level: its id, "" for none."""
        self._levels = levels

    def level_menu(self, level: str, title: str, parent: QMenu) -> QMenu:
        """Return a menu of all presets for a level, the present one marked."""
        menu = parent.addMenu(title)
        none = tr("No preset") if level == "everywhere" else tr("As everywhere")
        offered = [p for p in self._presets if p.sampling or self._levels.get(level) == p.id]
        for preset_id, name in [("", none), *((p.id, tr(p.name)) for p in offered)]:
            action = menu.addAction(name, bound(self.level_chosen.emit, level, preset_id))
            action.setCheckable(True)
            action.setChecked(self._levels.get(level, "") == preset_id)
        return menu

    def menu(self) -> QMenu:
        """Return the menu of one's own presets and of what new chats begin with."""
        menu = QMenu(self)
        own = [preset for preset in self._presets if preset.id not in self.buttons]
        for preset in own:
            menu.addAction(preset.name, bound(self.chosen.emit, preset))
        if own:
            menu.addSeparator()
        menu.addAction(tr("Save the present values…"), self.save_wanted.emit)
        if own:
            deleting = menu.addMenu(tr("Delete a preset"))
            for preset in own:
                deleting.addAction(preset.name, bound(self.deletion_wanted.emit, preset))
        menu.addAction(tr("Back to the defaults"), self.reset_wanted.emit)
        menu.addSeparator()
        self.level_menu("everywhere", tr("New chats begin with"), menu)
        self.level_menu("model", tr("New chats with this model begin with"), menu)
        return menu

    def _open_mine(self) -> None:
        menu = self.menu()
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(self.mine.mapToGlobal(self.mine.rect().bottomLeft()))
