"""The Sampling tab: presets above, one card per stage of the chain below."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QMenu, QPushButton, QVBoxLayout, QWidget

from app.strings import tr
from app.ui.bound import bound
from app.ui.theme import theme
from app.ui.widgets.chain_order import ChainOrder
from app.ui.widgets.controls import button, label
from app.ui.widgets.flow import FlowLayout
from app.ui.widgets.grammar_card import GrammarCard
from app.ui.widgets.sampler_card import OFF, SamplerCard


class SamplingPanel(QWidget):
    """Shows and changes the sampling values of one conversation.

    `samplers` are the rows of the engine's table: name, help, parameters (key, default, min, max,
    step, help). `presets` have id, name, sampling, help and is_shipped.

    Signals:
        changed(dict): values the person moved, to act on the next token.
        preset_chosen(object): all values of a preset should hold.
        save_wanted(): the present values should become a preset.
        level_chosen(str, str): new chats, "everywhere" or with this "model", begin with the
            preset of that id; "" is none.
    """

    changed = Signal(dict)
    preset_chosen = Signal(object)
    save_wanted = Signal()
    level_chosen = Signal(str, str)

    def __init__(self, samplers: Sequence[Any], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("scrolled")
        self.cards = [SamplerCard(sampler, self) for sampler in samplers]
        self.values: dict[str, Any] = {}
        self._presets: Sequence[Any] = ()
        self._levels: Mapping[str, str] = {}
        self._source: Callable[[str, Any, Any], str] | None = None
        self.preset_buttons: dict[str, QPushButton] = {}
        self.mine = button(tr("Mine ▾"), "preset", tr("My presets"), self)
        self.mine.clicked.connect(self._open_mine)
        self._row = QHBoxLayout()
        self._row.setSpacing(theme.px(6))
        box = QVBoxLayout(self)
        box.setContentsMargins(theme.px(16), theme.px(12), theme.px(14), theme.px(16))
        box.setSpacing(theme.px(7))
        box.addLayout(self._row)
        for card in self.cards:
            card.changed.connect(self._on_changed)
            card.use_changed.connect(self._show_unused)
            box.addWidget(card)
        self.order = ChainOrder(self.cards, box, 1)
        self.order.moved.connect(lambda names: self._take({"samplers": names}))
        self._add_unused(box)
        self.note = label(
            tr("Changes act on the next token, also while an answer runs."), "secondary"
        )
        self.note.setWordWrap(True)
        box.addWidget(self.note)
        self.neutral = button(tr("Neutralize"), "preset", tr("Let no sampler have an effect"), self)
        self.neutral.clicked.connect(self.neutralize)
        box.addWidget(self.neutral, 0, Qt.AlignmentFlag.AlignLeft)
        self.grammar = GrammarCard(self)
        box.addWidget(self.grammar)
        box.addStretch(1)

    def _add_unused(self, box: QVBoxLayout) -> None:
        """Offer the stages that have no effect as chips below the others."""
        self.unused_title = label(tr("NOT IN USE"), "section", self)
        self.unused_title.setContentsMargins(0, theme.px(8), 0, 0)
        self.unused = QWidget(self)
        flow = FlowLayout(self.unused, theme.px(6))
        self.chips: dict[str, QPushButton] = {}
        for card in self.cards:
            tip = tr("Switch on: {help}", help=card.help.text())
            chip = button(f"+ {card.title_text}", "chip", tip, self.unused)
            chip.setAccessibleName(tr("Switch {name} on", name=card.title_text))
            chip.clicked.connect(bound(card.switch_on))
            flow.addWidget(chip)
            self.chips[card.sampler.name] = chip
        box.addWidget(self.unused_title)
        box.addWidget(self.unused)
        self._show_unused()

    def _show_unused(self) -> None:
        for card in self.cards:
            self.chips[card.sampler.name].setVisible(not card.is_used())
        has_some = any(not card.is_used() for card in self.cards)
        self.unused_title.setVisible(has_some)
        self.unused.setVisible(has_some)
        self.unused.updateGeometry()

    def set_presets(self, presets: Sequence[Any]) -> None:
        """Offer these presets: the shipped ones as buttons, the person's own in a menu."""
        self._presets = presets
        for shown in self.preset_buttons.values():
            shown.deleteLater()
        self.preset_buttons = {}
        while self._row.count():
            self._row.takeAt(0)
        for preset in [p for p in presets if p.is_shipped][:3]:
            made = button(tr(preset.name), "preset", tr(preset.help) or tr(preset.name), self)
            made.setCheckable(True)
            made.clicked.connect(bound(self.preset_chosen.emit, preset))
            self.preset_buttons[preset.id] = made
            self._row.addWidget(made, 1)
        self._row.addWidget(self.mine, 1)
        self.show_values(self.values)

    def show_values(self, values: Mapping[str, Any]) -> None:
        """Show the values that differ from the defaults; nothing is emitted."""
        self.values = dict(values)
        for card in self.cards:
            defaults = {row.parameter.key: row.parameter.default for row in card.rows}
            card.show_values({**defaults, **self.values})
            card.show_sources(self._sources(defaults))
        self.order.show(self.values.get("samplers"))
        for preset in self._presets:
            if preset.id in self.preset_buttons:
                self.preset_buttons[preset.id].setChecked(self._is_in_force(preset))

    def set_levels(
        self, levels: Mapping[str, str], source: Callable[[str, Any, Any], str] | None = None
    ) -> None:
        """Know the preset of each level (id, "" for none), and ask `source` where a value is from.

        `source(key, value, default)` returns a word or two.
        """
        self._levels, self._source = levels, source

    def _sources(self, defaults: Mapping[str, Any]) -> dict[str, str]:
        if self._source is None:
            return {}
        shown = {key: self.values.get(key, default) for key, default in defaults.items()}
        return {key: self._source(key, shown[key], defaults[key]) for key in defaults}

    def level_menu(self, level: str, title: str, parent: QMenu) -> QMenu:
        """Return a menu of all presets for a level, the present one marked."""
        menu = parent.addMenu(title)
        none = tr("No preset") if level == "everywhere" else tr("As everywhere")
        for preset_id, name in [("", none), *((p.id, tr(p.name)) for p in self._presets)]:
            action = menu.addAction(name, bound(self.level_chosen.emit, level, preset_id))
            action.setCheckable(True)
            action.setChecked(self._levels.get(level, "") == preset_id)
        return menu

    def _is_in_force(self, preset: Any) -> bool:
        for card in self.cards:
            for row in card.rows:
                key, default = row.parameter.key, row.parameter.default
                wanted = float(preset.sampling.get(key, default))
                if abs(wanted - float(self.values.get(key, default))) > 1e-9:
                    return False
        order = preset.sampling.get("samplers", self.order.default)
        return list(order) == self.order.names

    def _on_changed(self, key: str, value: Any) -> None:
        if value is None:
            value = self.defaults()[key]
        values = {key: value}
        names = [name for name in self.order.names if name != "adaptive_p"]
        if key == "adaptive_target":  # it acts only where it stands in the chain
            values["samplers"] = [*names, "adaptive_p"] if value > 0 else names
        self._take(values)

    def _take(self, values: dict[str, Any]) -> None:
        """Show what the person changed, and tell it."""
        self.show_values({**self.values, **values})
        self.changed.emit(values)

    def neutralize(self) -> None:
        """Give every stage the values that have no effect; the order stays."""
        neutral = {**OFF, "temperature": 1.0, "dynatemp_range": 0.0}
        self._take({key: neutral[key] for key in self.defaults() if key in neutral})

    def _open_mine(self) -> None:
        menu = QMenu(self)
        for preset in self._presets:
            if preset.id not in self.preset_buttons:
                menu.addAction(preset.name, bound(self.preset_chosen.emit, preset))
        if menu.actions():
            menu.addSeparator()
        menu.addAction(tr("Save the present values…"), self.save_wanted.emit)
        menu.addAction(tr("Back to the defaults"), self._reset_all)
        menu.addSeparator()
        self.level_menu("everywhere", tr("New chats begin with"), menu)
        self.level_menu("model", tr("New chats with this model begin with"), menu)
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(self.mine.mapToGlobal(self.mine.rect().bottomLeft()))

    def defaults(self) -> dict[str, Any]:
        """Return the default of every parameter on the cards."""
        numbers = {
            row.parameter.key: row.parameter.default for card in self.cards for row in card.rows
        }
        return {**numbers, "samplers": list(self.order.default)}

    def _reset_all(self) -> None:
        defaults = self.defaults()
        self.show_values(defaults)
        self.changed.emit(defaults)
