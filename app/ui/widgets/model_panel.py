"""The Model tab: what is loaded, how it is loaded, and how far a load is."""

from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFormLayout, QFrame, QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from app.services.model_words import main_quantization, parameters
from app.settings import SETTINGS
from app.strings import count, megabytes, tr
from app.ui.theme import theme
from app.ui.widgets.controls import ElidedLabel, button, label
from app.ui.widgets.error_card import ErrorCard
from app.ui.widgets.settings_form import SettingsForm

STATES = {
    "empty": "No model is loaded.",
    "loading": "Loading…",
    "ready": "Ready",
    "failed": "This model could not be loaded.",
}


class ModelPanel(QWidget):
    """Shows the model and its load settings.

    Signals:
        choose_wanted(), unload_wanted(), reload_wanted(): buttons.
        changed(str, object): a load setting that holds from the next load on.
    """

    choose_wanted = Signal()
    unload_wanted = Signal()
    reload_wanted = Signal()
    changed = Signal(str, object)

    def __init__(self, settings: Any, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("scrolled")
        self.name = ElidedLabel("", "subheading", self)
        self.state = label("", "secondary", self)
        self.state.setWordWrap(True)
        self.progress = QProgressBar(self)
        self.progress.setTextVisible(False)
        self.progress.setRange(0, 1000)
        self.progress.setAccessibleName(tr("Progress of opening the model"))
        self.choose = button(tr("Choose…"), "", tr("Choose a model"), self)
        self.reload = button(tr("Load again"), "", tr("Load with these settings"), self)
        self.unload = button(tr("Unload"), "", tr("Take the model out of memory"), self)
        self.error: ErrorCard | None = None
        self.facts = QWidget(self)
        self.facts_form = QFormLayout(self.facts)
        self.facts_form.setContentsMargins(0, 0, 0, 0)
        self.facts_form.setVerticalSpacing(theme.px(4))
        rows = tuple(row for row in SETTINGS if row.group == "Engine")
        self.form = SettingsForm(settings, rows, self)
        self._arrange()
        self.choose.clicked.connect(self.choose_wanted)
        self.reload.clicked.connect(self.reload_wanted)
        self.unload.clicked.connect(self.unload_wanted)
        self.form.changed.connect(self.changed)

    def _arrange(self) -> None:
        self.box = QVBoxLayout(self)
        self.box.setContentsMargins(theme.px(16), theme.px(14), theme.px(14), theme.px(16))
        self.box.setSpacing(theme.px(10))
        card = QFrame(self)
        card.setObjectName("card")
        inside = QVBoxLayout(card)
        inside.setContentsMargins(theme.px(14), theme.px(12), theme.px(14), theme.px(12))
        inside.setSpacing(theme.px(8))
        inside.addWidget(self.name)
        inside.addWidget(self.state)
        inside.addWidget(self.progress)
        inside.addWidget(self.facts)
        row = QHBoxLayout()
        row.setSpacing(theme.px(8))
        row.addWidget(self.choose)
        row.addWidget(self.unload)
        row.addStretch(1)
        inside.addLayout(row)
        self.card = inside
        self.box.addWidget(card)
        self.box.addSpacing(theme.px(6))
        self.box.addWidget(label(tr("HOW IT IS LOADED"), "section"))
        self.box.addWidget(self.form)
        self.box.addWidget(self.reload, 0, Qt.AlignmentFlag.AlignLeft)
        self.box.addStretch(1)

    def show_engine(self, engine: Any) -> None:
        """Show the state of the engine service."""
        self.name.set_text(engine.name or tr("No model"))
        self.state.setText(tr(STATES.get(engine.state, "")))
        self.progress.setVisible(engine.state == "loading")
        self.unload.setVisible(engine.state in ("loading", "ready"))
        self.unload.setText(tr("Cancel") if engine.state == "loading" else tr("Unload"))
        self.reload.setEnabled(engine.path is not None)
        if self.error is not None:
            self.error.deleteLater()
            self.error = None
        if engine.state == "failed":
            remedies = (("choose", tr("Choose another")),)
            self.error = ErrorCard(engine.error, engine.details, remedies, self)
            self.error.remedy.connect(lambda _: self.choose_wanted.emit())
            self.box.insertWidget(1, self.error)

    def show_progress(self, stage: str, done: float) -> None:
        """Show how far a load is, 0 to 1."""
        self.state.setText(stage)
        self.progress.setValue(round(1000 * done))

    def show_facts(self, rows: list[tuple[str, str]]) -> None:
        """Show what is known about the model as (label, value)."""
        while self.facts_form.rowCount():
            self.facts_form.removeRow(0)
        for name, value in rows:
            shown = ElidedLabel(value, "secondary", self.facts)
            self.facts_form.addRow(label(name, "secondary"), shown)
        self.facts.setVisible(bool(rows))


def fact_rows(model: Any, facts: Any) -> list[tuple[str, str]]:
    """Return what is known about a model as (label, value) rows."""
    rows = []
    if facts is not None:
        n_ctx = getattr(facts, "n_ctx_train", 0) or 0
        rows = [
            (tr("Architecture"), str(getattr(facts, "arch", ""))),
            (tr("Parameters"), parameters(getattr(facts, "n_params", 0) or 0)),
            (tr("Quantization"), main_quantization(facts)),
            (tr("Trained context"), tr("{n} tokens", n=count(n_ctx)) if n_ctx else ""),
            (tr("Size"), megabytes(getattr(facts, "size_bytes", 0) or 0)),
            (tr("Chat template"), _template_words(getattr(facts, "chat_template", None))),
        ]
    if model is not None:
        rows.append((tr("File"), str(model)))
    return [(name, value) for name, value in rows if value]


def _template_words(template: str | None) -> str:
    return tr("its own") if template else tr("the file has none; chosen by its vocabulary")
