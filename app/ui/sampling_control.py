"""Ties the Sampling tab to the conversation of the current pane: values, presets, saving."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QInputDialog, QWidget

from app.services.constraint import check
from app.services.engine_service import sentence
from app.services.everything import Services
from app.services.preset_levels import PresetLevels
from app.services.sampling import sampler_rows
from app.strings import tr
from app.ui.guard import Guard
from app.ui.panes import Panes
from app.ui.theme import theme
from app.ui.tokens_control import TokensControl
from app.ui.widgets.inspector import Inspector
from app.ui.widgets.sampling_panel import SamplingPanel


class SamplingControl(QObject):
    """Owns the panel; built when the window is already on the screen."""

    def __init__(
        self,
        services: Services,
        inspector: Inspector,
        panes: Panes,
        guard: Guard,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._services = services
        self._inspector = inspector
        self._panes = panes
        self._guard = guard
        self._window = window
        self._rows: Sequence[Any] = ()
        self._levels = PresetLevels(services.settings, services.presets)
        self._model = services.engine.file_name()
        services.engine.changed.connect(self._on_engine_changed)
        self.panel = SamplingPanel(())
        inspector.set_page("sampling", tr("Sampling"), self.panel)
        self.tokens = TokensControl(services, inspector, panes, guard, window)
        panes.opened.connect(lambda _: self.show_values())
        theme.changed.connect(self._on_theme_changed)

    def begin(self) -> None:
        """Fetch the engine's table beside the window (it brings numpy along), then build it."""
        self._services.jobs.run(sampler_rows, self._fill)

    def _fill(self, rows: Sequence[Any]) -> None:
        """Build the cards from the engine's table."""
        self._rows = rows
        self.panel = SamplingPanel(rows)
        self.panel.set_presets(self._services.presets.all())
        self.panel.changed.connect(lambda values: self._panes.current.change_sampling(values))
        self.panel.preset_chosen.connect(self._on_preset_chosen)
        self.panel.save_wanted.connect(self._ask_for_name)
        self.panel.level_chosen.connect(self.choose_level)
        self.panel.grammar.check_wanted.connect(self._check)
        self.panel.grammar.chosen.connect(
            lambda kept: self._panes.current.keep_params(constraint=kept)
        )
        self.show_values()
        self._inspector.set_page("sampling", tr("Sampling"), self.panel)

    def show_values(self) -> None:
        """Show the values of the conversation in the current pane."""
        params = self._panes.current.params
        model = self._services.engine.file_name()
        self.panel.set_levels(
            self._levels.ids(model),
            lambda key, value, default: self._levels.source(key, value, default, model),
        )
        self.panel.show_values(params.get("sampling", {}))
        self.panel.grammar.present(params.get("constraint", {}))

    def _check(self, kind: str, text: str) -> None:
        """Check a constraint beside the window: it may take a second."""
        self._services.jobs.run(
            lambda: check(kind, text),
            lambda wrong: self.panel.grammar.tell(kind, text, wrong),
            lambda error, _: self.panel.grammar.tell(kind, text, sentence(error)),
        )

    def choose_level(self, level: str, preset_id: str) -> None:
        """Let new chats begin with a preset, an empty page on show too."""
        model = self._services.engine.file_name()
        before = self._levels.fresh(model)
        self._guard.attempt(lambda: self._levels.choose(level, preset_id, model))
        self._begin_afresh(before)

    def _on_engine_changed(self) -> None:
        before, self._model = self._levels.fresh(self._model), self._services.engine.file_name()
        self._begin_afresh(before)

    def _begin_afresh(self, before: dict[str, Any]) -> None:
        """Give empty pages what new chats begin with now, unless the person changed something."""
        fresh = self._levels.fresh(self._services.engine.file_name())
        for pane in self._panes.all():
            if pane.conversation is None and pane.params.get("sampling", {}) == before:
                pane.params = {**pane.params, "sampling": fresh}
        self.show_values()

    def _on_theme_changed(self) -> None:
        if self._rows:
            self._fill(self._rows)

    def _on_preset_chosen(self, preset: Any) -> None:
        values = {**self.panel.defaults(), **preset.sampling}
        self.panel.show_values(values)
        self._panes.current.change_sampling(values, replace=True)

    def _ask_for_name(self) -> None:
        dialog = QInputDialog(self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setWindowTitle(tr("Save preset"))
        dialog.setLabelText(tr("Name of the preset"))
        dialog.textValueSelected.connect(self.store)
        dialog.open()

    def store(self, name: str) -> None:
        """Save the present values as a preset of the person's own."""
        values = dict(self.panel.values)
        saved = self._guard.attempt(lambda: self._services.presets.save(name, values))
        if saved is not None:
            self._levels.read_again()
            self.panel.set_presets(self._services.presets.all())
            self._guard.say(tr("“{name}” is saved.", name=saved.name))
