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
from app.services.sources import from_preset
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
        self._levels = PresetLevels(services.settings, services.presets, services.engine)
        services.engine.changed.connect(self._begin_afresh)
        self.panel = SamplingPanel(())
        inspector.set_page("sampling", tr("Sampling"), self.panel)
        self.tokens = TokensControl(services, inspector, panes, guard, window)
        panes.opened.connect(lambda _: self._on_opened())
        theme.changed.connect(self._on_theme_changed)

    def begin(self) -> None:
        """Fetch the engine's table beside the window (it brings numpy along), then build it."""
        self._services.jobs.run(sampler_rows, self._fill)

    def _fill(self, rows: Sequence[Any]) -> None:
        """Build the cards from the engine's table."""
        self._rows = rows
        self.panel = SamplingPanel(rows)
        self.panel.changed.connect(self._on_changed)
        presets, panes = self.panel.presets, self._panes
        presets.chosen.connect(self._on_preset_chosen)
        presets.save_wanted.connect(self._ask_for_name)
        presets.deletion_wanted.connect(self._delete_preset)
        presets.level_chosen.connect(self.choose_level)
        self.panel.limits.changed.connect(lambda key, v: panes.current.asked.limit(key, v))
        grammar = self.panel.grammar
        grammar.check_wanted.connect(self._check)
        grammar.chosen.connect(lambda kept: panes.current.asked.keep(constraint=kept))
        grammar.drafted.connect(lambda d: panes.current.asked.keep_later(constraint_draft=d))
        self.show_values()
        self._inspector.set_page("sampling", tr("Sampling"), self.panel)

    def show_values(self) -> None:
        """Show the values of the conversation in the current pane."""
        params = self._panes.current.params
        self.panel.presets.set_levels(self._levels.ids())
        self.panel.set_presets(self._levels.offered())
        self.panel.show_values(params.get("sampling", {}), params.get("sources"))
        self.panel.limits.present(params)
        self.panel.grammar.present(params.get("constraint", {}), params.get("constraint_draft"))

    def _on_opened(self) -> None:
        self.panel.fold_unused()
        self.show_values()

    def _on_changed(self, values: dict[str, Any]) -> None:
        self._panes.current.asked.change_sampling(values, self.panel.sources)

    def _check(self, kind: str, text: str) -> None:
        """Check a constraint beside the window: it may take a second."""
        self._services.jobs.run(
            lambda: check(kind, text),
            lambda wrong: self.panel.grammar.tell(kind, text, wrong),
            lambda error, _: self.panel.grammar.tell(kind, text, sentence(error)),
        )

    def choose_level(self, level: str, preset_id: str) -> None:
        """Let new chats begin with a preset, an empty page on show too."""
        self._guard.attempt(lambda: self._levels.choose(level, preset_id))
        self._begin_afresh()

    def _begin_afresh(self) -> None:
        """Give empty pages what new chats begin with now, unless the person changed something."""
        for pane in self._panes.all():
            sources = pane.params.get("sources", {}).values()
            if pane.conversation is None and all(source[0] != "chat" for source in sources):
                pane.asked.values = {**pane.params, **self._levels.fresh()}
        self.show_values()

    def _on_theme_changed(self) -> None:
        if self._rows:
            self._fill(self._rows)

    def _on_preset_chosen(self, preset: Any) -> None:
        values = {**self.panel.defaults(), **preset.sampling}
        sources = from_preset("chat", preset.name, preset.sampling)
        self.panel.show_values(values, sources)
        self._panes.current.asked.change_sampling(values, sources, replace=True)

    def _delete_preset(self, preset: Any) -> None:
        presets = self._services.presets
        self._guard.attempt(lambda: presets.delete(preset.id))
        self._levels.read_again()
        self.show_values()

        def undo() -> None:
            self._guard.attempt(lambda: presets.save(preset.name, preset.sampling, preset.system))
            self._levels.read_again()
            self.show_values()

        self._guard.say(tr("The preset “{name}” is deleted.", name=preset.name), undo)

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
            self.show_values()
            self._guard.say(tr("“{name}” is saved.", name=saved.name))
