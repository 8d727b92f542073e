"""Ties the Tokens tab to the last answer of the current pane; tokens are told while it is open."""

from typing import Any

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QWidget

from app.chats.conversation import Message
from app.services.everything import Services
from app.strings import tr
from app.ui.guard import Guard
from app.ui.panes import Panes
from app.ui.theme import theme
from app.ui.widgets.inspector import Inspector
from app.ui.widgets.tokens_panel import TokensPanel

KEY = "tokens"
_FRAME_MS = 100


class TokensControl(QObject):
    """Owns the panel; the engine looks into tokens only while it is in front."""

    def __init__(
        self,
        services: Services,
        inspector: Inspector,
        panes: Panes,
        guard: Guard,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._services, self._inspector, self._panes = services, inspector, panes
        self._guard = guard
        self._log = services.replies.tokens
        self.panel = TokensPanel()
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(_FRAME_MS)
        self._soon.timeout.connect(self.refresh)
        inspector.shown.connect(self._on_tab)
        panes.opened.connect(lambda _: self.refresh())
        panes.current_changed.connect(lambda _: self.refresh())
        services.chats.branched.connect(lambda _: self._soon.start())
        services.replies.settled.connect(lambda *_: self._soon.start())
        self._log.changed.connect(lambda _: self._soon.isActive() or self._soon.start())
        theme.changed.connect(self._build)
        self._build()

    def _build(self) -> None:
        self.panel = TokensPanel()
        self.panel.rival_chosen.connect(self.go_on_from)
        self.panel.replay_wanted.connect(lambda: self._act("message.replay"))
        self._inspector.set_page(KEY, tr("Tokens"), self.panel)
        self.refresh()

    def _on_tab(self, key: str) -> None:
        self._log.is_wanted = key == KEY
        self.refresh()

    def answer(self) -> Message | None:
        """Return the last answer of the branch on show, or None."""
        messages = self._panes.current.transcript.messages
        answers = [message for message in messages if message.role == "assistant"]
        return answers[-1] if answers else None

    def refresh(self) -> None:
        """Show what is known now; nothing is done while the tab is behind another."""
        if not self._log.is_wanted:
            return
        message = self.answer()
        known = self._log.of(message.id) if message is not None else None
        can_replay = message is not None and "seed" in message.record
        self.panel.show_answer(known.tokens if known else None, can_replay)

    def go_on_from(self, place: int, rival: Any) -> None:
        """Begin another version of the answer with another candidate."""
        message, pane = self.answer(), self._panes.current
        if message is None:
            return
        if pane.is_running():
            self._guard.say(tr("Stop the answer first, then choose another token."))
            return
        self._guard.attempt(lambda: self._services.chats.go_on_from(message, place, rival))

    def _act(self, key: str) -> None:
        self._panes.current.acts.act_on_last(key)
