"""What can be done with one message: copy, edit, answer again, branch, delete, ask how."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject

from app.chats.conversation import Message
from app.services.figures import rows
from app.services.reasoning import split_reasoning
from app.strings import tr
from app.ui.markdown import parse
from app.ui.widgets.details_popup import DetailsPopup

if TYPE_CHECKING:
    from app.ui.pages.chat import ChatPane


class MessageActs(QObject):
    """The acts of the row under a message, and of the keys that mean the last one."""

    def __init__(self, pane: ChatPane) -> None:
        super().__init__(pane)
        self._pane = pane
        self._chats = pane.services.chats
        self._transcript = pane.transcript
        self._transcript.action.connect(self.act)
        self._transcript.sibling.connect(self.go_to_sibling)
        self._chats.replayed.connect(self._on_replayed)

    def act(self, key: str, message: Message) -> None:
        """Do what a button under a message says."""
        chats = self._chats
        acts: dict[str, Callable[[], Any]] = {
            "message.copy": lambda: self._pane.copy(self._said(message)),
            "message.edit": lambda: self._pane.begin_editing(message),
            "message.regenerate": lambda: self._when_idle(lambda: chats.regenerate(message)),
            "message.continue": lambda: self._when_idle(lambda: chats.resume(message)),
            "message.replay": lambda: self._when_idle(lambda: self._replay(message)),
            "message.branch": lambda: self._branch_from(message),
            "message.details": lambda: self._show_details(message),
            "message.delete": lambda: self._delete(message),
            "message.answer_now": lambda: chats.end_reasoning(message.conversation_id),
        }
        if key in acts:
            self._pane.guard.attempt(acts[key])

    def _said(self, message: Message) -> str:
        """Return the text of a message without what the model thought before it."""
        text = self._transcript.text_of(message)
        return text if message.role == "user" else split_reasoning(text)[1]

    def act_on_last(self, key: str) -> None:
        """Do an act on the last answer, for the keys that work anywhere."""
        answers = [m for m in self._transcript.messages if m.role == "assistant"]
        if answers:
            self.act(key, answers[-1])

    def edit_question(self) -> None:
        """Edit the last question."""
        questions = [m for m in self._transcript.messages if m.role == "user"]
        if questions:
            self._pane.begin_editing(questions[-1])

    def copy_selection(self) -> None:
        """Copy the selected text of the page."""
        self._pane.copy(self._transcript.pointer.selected_text())

    def copy_last_code(self) -> None:
        """Copy the last code block of the conversation."""
        for message in reversed(self._transcript.messages):
            blocks = [b for b in parse(self._said(message)) if b.kind == "code"]
            if blocks:
                self._pane.copy(blocks[-1].text)
                return

    def step_version(self, step: int) -> None:
        """Show another version of the last message."""
        if self._transcript.messages:
            self.go_to_sibling(self._transcript.messages[-1], step)

    def go_to_sibling(self, message: Message, step: int) -> None:
        """Show the version of a message that many steps away."""
        if not self._pane.is_running():
            self._pane.guard.attempt(lambda: self._chats.go_to_sibling(message, step))

    def _when_idle(self, act: Callable[[], Any]) -> None:
        if not self._pane.composer.blocked and not self._pane.is_running():
            act()

    def _replay(self, message: Message) -> None:
        why = self._chats.replay(message)
        if why:
            is_running = self._pane.is_running()
            head = tr("This may become another text: ") if is_running else ""
            self._pane.guard.say(head + " ".join(why))

    def _on_replayed(self, conversation_id: int, is_same: bool) -> None:
        if conversation_id != self._pane.conversation_id:
            return
        other = tr(
            "The replay came out differently: read together with other answers, or in other"
            " pieces, nearly equal tokens can change places."
        )
        self._pane.guard.say(tr("The replay is the same text.") if is_same else other)

    def _branch_from(self, message: Message) -> None:
        leaf, chat_id = self._pane.leaf_id, message.conversation_id
        self._chats.branch_from(message)
        self._pane.composer.edit.setFocus()

        def back() -> None:
            self._pane.guard.attempt(lambda: self._chats.show_branch(chat_id, leaf))

        self._pane.guard.say(tr("Your next message starts another branch here."), back)

    def _delete(self, message: Message) -> None:
        self._chats.trash_message(message)

        def undo() -> None:
            self._pane.guard.attempt(lambda: self._chats.restore_message(message))

        self._pane.guard.say(tr("The message and what follows it are deleted."), undo)

    def _show_details(self, message: Message) -> None:
        known = rows(message.record) or [(tr("Written"), tr("by you"))]
        popup = DetailsPopup(tr("How this answer was made"), known, self._pane)
        row = self._transcript.row
        popup.open_at(row.mapToGlobal(row.rect().topLeft()))
