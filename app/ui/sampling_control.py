"""Ties the Sampling tab to the conversation of the current pane: values, presets, saving."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QInputDialog, QWidget

from app.services.constraint import check
from app.services.engine_service import sentence
from app.services.everything import Services
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
        self.panel.grammar.check_wanted.connect(self._check)
        self.panel.grammar.chosen.connect(
            lambda kept: self._panes.current.keep_params(constraint=kept)
        )
        self.show_values()
        self._inspector.set_page("sampling", tr("Sampling"), self.panel)

    def show_values(self) -> None:
        """Show the values of the conversation in the current pane."""
        params = self._panes.current.params
        self.panel.show_values(params.get("sampling", {}))
        self.panel.grammar.present(params.get("constraint", {}))

    def _check(self, kind: str, text: str) -> None:
        """Check a constraint beside the window: it may take a second."""
        self._services.jobs.run(
            lambda: check(kind, text),
            lambda wrong: self.panel.grammar.tell(kind, text, wrong),
            lambda error, _: self.panel.grammar.tell(kind, text, sentence(error)),
        )

    def _on_theme_changed(self) -> None:
        if self._rows:
            self._fill(self._rows)

    def _on_preset_chosen(self, preset: Any) -> None:
        values = {**self.panel.defaults(), **preset.sampling}
        self.panel.show_values(values)
        self._panes.current.change_sampling(values, replace=True)
        self._services.settings["preset"] = preset.id
        self._guard.attempt(self._services.settings.save)

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
            self.panel.set_presets(self._services.presets.all())
            self._guard.say(tr("“{name}” is saved.", name=saved.name))
