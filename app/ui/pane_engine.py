"""What a pane tells of the engine: the chip, the empty page, a load that failed, who waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.services.slots import line_words
from app.strings import tr
from app.ui.widgets.error_card import ErrorCard
from app.ui.widgets.reading import Reading

if TYPE_CHECKING:
    from app.ui.pages.chat import ChatPane


class PaneEngine(QObject):
    """Follows the engine service for one pane.

    Signals:
        remedy_wanted(str): "choose", "again" or "keep", after a load that failed.
    """

    remedy_wanted = Signal(str)

    def __init__(self, pane: ChatPane) -> None:
        super().__init__(pane)
        self._pane = pane
        self._engine = pane.services.engine
        self._replies = pane.services.replies
        self.card: ErrorCard | None = None
        self._engine.changed.connect(self.show)
        self._engine.progressed.connect(self._show_loading)
        self._replies.busy_changed.connect(self.show_waiting)

    def show(self) -> None:
        """Show which model answers, whether anything can be sent, and what went wrong."""
        engine, pane = self._engine, self._pane
        words = {"empty": tr("Choose a model"), "loading": tr("Loading {name}…", name=engine.name)}
        pane.header.set_model(words.get(engine.state, engine.name or tr("Choose a model")))
        reasons = {
            "empty": tr("Choose a model first."),
            "failed": tr("The model could not be loaded: {why}", why=engine.error),
        }
        pane.composer.block(reasons.get(engine.state, ""))
        self.show_card()
        pane.show_page()
        self._show_loading()
        pane.figures.count_draft()

    def show_card(self) -> None:
        """Say why a model could not be loaded, in the pane with the attention."""
        engine = self._engine
        if self.card is not None:
            self.card.deleteLater()
            self.card = None
        name = engine.path.name if engine.path is not None else engine.name
        why, details = engine.error, engine.details
        remedies = [("choose", tr("Choose another model"))]
        if engine.state == "failed":
            remedies.append(("again", tr("Try again")))
        elif engine.refusal is not None:
            refusal = engine.refusal
            name, why, details = refusal.name, refusal.sentence, refusal.details
            remedies.append(("keep", tr("Keep the present model")))
        if not self._pane.is_current or (engine.state != "failed" and engine.refusal is None):
            return
        title = tr("“{name}” could not be loaded", name=name)
        self.card = ErrorCard(why, details, tuple(remedies), self._pane, title)
        self.card.remedy.connect(self.remedy_wanted)
        self._pane.show_above_composer(self.card)

    def _show_loading(self) -> None:
        """Show how far a load is: on the empty page, and where an answer waits for it."""
        self._pane.empty.show_progress(self._engine.stage, self._engine.done)
        self.show_waiting()

    def show_waiting(self) -> None:
        """Show what a running answer waits for, before its first word."""
        running = self._replies.running.get(self._pane.conversation_id)
        if running is not None and running.phase() == "waiting":
            self._pane.transcript.set_reading(running.message.id, self.reading())

    def reading(self) -> Reading:
        """Return how far the running answer of the pane is before its first word."""
        engine, conversation_id = self._engine, self._pane.conversation_id
        running = self._replies.running.get(conversation_id)
        if running is not None and running.progress is not None:
            known = running.progress
            return Reading(known.n_prompt, known.n_cached, known.n_read, known.elapsed_ms)
        if engine.state == "loading":
            note = tr("Waiting for {name}: {stage}", name=engine.name, stage=engine.stage or "…")
            return Reading(waiting_for=note, waited=engine.done)
        place = self._replies.place_in_line(conversation_id)
        words = line_words(place)
        return Reading(waiting_for=words[:1].upper() + words[1:] if place else "")
