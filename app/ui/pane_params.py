"""What the chat of a pane asks of its answers: sampling, limits, form and system prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QTimer

from app.services.preset_levels import PresetLevels

if TYPE_CHECKING:
    from app.chats.conversation import Conversation
    from app.ui.pages.chat import ChatPane

_LATER_MS = 400


class PaneParams(QObject):
    """Keeps them for the conversation on show, or for the one that an empty page will become.

    Attributes:
        values: the params of the conversation.
    """

    def __init__(self, pane: ChatPane) -> None:
        super().__init__(pane)
        self._pane = pane
        self._chats = pane.services.chats
        self.values: dict[str, Any] = {}
        self._fresh_draft: dict[str, Any] = {}  # of a grammar, on the empty page
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(_LATER_MS)
        self._later.timeout.connect(self._store)

    def begin(self, conversation: Conversation | None) -> None:
        """Take over those of a conversation; an empty page begins with what the levels say."""
        if conversation is not None:
            self.values = dict(conversation.params)
            return
        services = self._pane.services
        self.values = PresetLevels(services.settings, services.presets, services.engine).fresh()
        if self._fresh_draft:
            self.values["constraint_draft"] = self._fresh_draft

    def keep(self, **values: Any) -> None:
        """Keep other values than sampling ones for the next answers; None takes one away."""
        self._set(values)
        self._store()

    def keep_later(self, **values: Any) -> None:
        """As `keep`, written a moment later, for what changes with every key."""
        self._set(values)
        self._later.start()

    def flush(self) -> None:
        """Write what waits to be written; the pane goes on to another chat."""
        if self._later.isActive():
            self._store()
        if self._pane.conversation is None:
            self._fresh_draft = self.values.get("constraint_draft", {})

    def change_sampling(
        self,
        values: dict[str, Any],
        sources: dict[str, list[str]] | None = None,
        replace: bool = False,
    ) -> None:
        """Use other sampling values from the next token on, and in later answers here.

        `sources` are those of all values from now on; without them these were set by hand.
        """
        known = {} if replace else self.values.get("sampling", {})
        self._set({"sampling": {**known, **values}})
        if sources is not None:
            self._set({"sources": dict(sources)})
        if self._pane.conversation is None:
            return
        chats, conversation_id = self._chats, self._pane.conversation_id
        if replace:
            self._store()
        self._pane.guard.attempt(lambda: chats.change_sampling(conversation_id, values, sources))
        self._pane.refresh_conversation()

    def limit(self, key: str, value: Any) -> None:
        """Keep a limit, at once in a running answer too where it can act there."""
        self.keep(**{key: value})
        conversation_id = self._pane.conversation_id
        if conversation_id and key != "seed":
            still = {"stop": []}.get(key, -1) if value is None else value
            self._pane.guard.attempt(lambda: self._chats.limit(conversation_id, {key: still}))

    def _set(self, values: dict[str, Any]) -> None:
        changed = {**self.values, **values}
        self.values = {key: value for key, value in changed.items() if value is not None}

    def _store(self) -> None:
        self._later.stop()
        if self._pane.conversation is not None:
            chats, conversation_id = self._chats, self._pane.conversation_id
            self._pane.guard.attempt(lambda: chats.change(conversation_id, params=self.values))
