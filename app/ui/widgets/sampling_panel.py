"""The Sampling tab: presets above, one card per stage of the chain, then limits and form."""

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from app.services.sources import by_hand, in_a_word, in_words, source_of
from app.strings import tr
from app.ui.bound import bound
from app.ui.theme import theme
from app.ui.widgets.chain_order import ChainOrder
from app.ui.widgets.controls import button, label
from app.ui.widgets.flow import FlowLayout
from app.ui.widgets.grammar_card import GrammarCard
from app.ui.widgets.limits_card import LimitsCard
from app.ui.widgets.preset_row import PresetRow
from app.ui.widgets.sampler_card import SamplerCard
from app.ui.widgets.value_row import NEUTRAL


class SamplingPanel(QWidget):
    """Shows and changes the sampling values of one conversation.

    `samplers` are the rows of the engine's table: name, help, parameters (key, default, min, max,
    step, help). `sources` says where each of `values` is from (`app.services.sources`).

    Signals:
        changed(dict): values the person moved, to act on the next token; `sources` knows them.
    """

    changed = Signal(dict)

    def __init__(self, samplers: Sequence[Any], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("scrolled")
        self.cards = [SamplerCard(sampler, self) for sampler in samplers]
        self.values: dict[str, Any] = {}
        self.sources: dict[str, list[str]] = {}
        self._presets: Sequence[Any] = ()
        self.presets = PresetRow(self)
        self.presets.reset_wanted.connect(self._reset_all)
        self.presets.neutral_wanted.connect(self.neutralize)
        box = QVBoxLayout(self)
        box.setContentsMargins(theme.px(16), theme.px(12), theme.px(14), theme.px(16))
        box.setSpacing(theme.px(7))
        box.addWidget(self.presets)
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
        self.limits = LimitsCard(self)
        box.addWidget(self.limits)
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
        """Offer these presets."""
        self._presets = presets
        self.presets.set_presets(presets)
        self._mark_presets()

    def show_values(
        self, values: Mapping[str, Any], sources: Mapping[str, Any] | None = None
    ) -> None:
        """Show the values that differ from the defaults; nothing is emitted.

        Without `sources` they count as set by hand. A value that is no number is passed by.
        """
        defaults = self.defaults()
        self.values = {key: v for key, v in values.items() if _is_sane(v, defaults.get(key))}
        found = {key: source_of(sources, key, key in self.values) for key in defaults}
        self.sources = {key: source for key, source in found.items() if source is not None}
        self._show()

    def _show(self) -> None:
        for card in self.cards:
            keys = [row.parameter.key for row in card.rows]
            card.show_values({**self.defaults(), **self.values})
            sources = {key: self.sources.get(key) for key in keys}
            words = {key: (in_a_word(s), in_words(s)) for key, s in sources.items()}
            card.show_sources(words)
        self.order.show(self.values.get("samplers"))
        self._mark_presets()

    def _mark_presets(self) -> None:
        self.presets.mark([p.id for p in self._presets if p.sampling and self._is_in_force(p)])

    def _is_in_force(self, preset: Any) -> bool:
        for card in self.cards:
            for row in card.rows:
                key, default = row.parameter.key, row.parameter.default
                wanted = preset.sampling.get(key, default)
                wanted = wanted if _is_sane(wanted, default) else default
                if abs(float(wanted) - float(self.values.get(key, default))) > 1e-9:
                    return False
        order = preset.sampling.get("samplers", self.order.default)
        return isinstance(order, list | tuple) and list(order) == self.order.names

    def _on_changed(self, key: str, value: Any) -> None:
        is_reset = value is None
        value = self.defaults()[key] if value is None else value
        values = {key: value}
        names = [name for name in self.order.names if name != "adaptive_p"]
        if key == "adaptive_target":  # it acts only where it stands in the chain
            values["samplers"] = [*names, "adaptive_p"] if value > 0 else names
        self._take(values, is_reset)

    def _take(self, values: dict[str, Any], is_reset: bool = False) -> None:
        """Show what the person changed, and tell it."""
        self.values = {**self.values, **values}
        kept = {key: source for key, source in self.sources.items() if key not in values}
        self.sources = kept if is_reset else kept | by_hand(values)
        self._show()
        self.changed.emit(values)

    def neutralize(self) -> None:
        """Give every stage the values that have no effect; the order stays."""
        self._take({key: NEUTRAL[key] for key in self.defaults() if key in NEUTRAL})
        self.fold_unused()

    def fold_unused(self) -> None:
        """Fold away the cards that were opened and have no effect."""
        for card in self.cards:
            card.fold()

    def defaults(self) -> dict[str, Any]:
        """Return the default of every parameter on the cards."""
        numbers = {
            row.parameter.key: row.parameter.default for card in self.cards for row in card.rows
        }
        return {**numbers, "samplers": list(self.order.default)}

    def _reset_all(self) -> None:
        self._take(self.defaults(), is_reset=True)


def _is_sane(value: Any, default: Any) -> bool:
    """Tell whether a value that was stored can stand where the default stands."""
    if isinstance(default, list):
        return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)
    if isinstance(default, int | float):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and abs(value) < 1e12
    return True
