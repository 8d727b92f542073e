"""What a person does with the list of conversations: find, open, rename, pin, delete, undo."""

import re
from pathlib import Path

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QFileDialog, QMessageBox

from app.chats.chat_file import SUFFIX
from app.errors import AppError
from app.services.everything import Services
from app.strings import tr
from app.ui.bound import bound
from app.ui.guard import Guard
from app.ui.panes import Panes
from app.ui.widgets.chat_list import chat_rows, hit_rows
from app.ui.widgets.sidebar import Sidebar


class ChatControl(QObject):
    """Ties the sidebar to the conversations and to the current pane."""

    def __init__(
        self, services: Services, sidebar: Sidebar, panes: Panes, guard: Guard, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._services = services
        self._sidebar = sidebar
        self._panes = panes
        self._guard = guard
        sidebar.model.lamp_words = lambda conversation_id: services.slots.lamp(conversation_id)[1]
        sidebar.chosen.connect(self.open)
        sidebar.started.connect(self.start)
        sidebar.searched.connect(lambda _: self.refresh())
        sidebar.renamed.connect(self._rename)
        sidebar.action.connect(self.act)
        panes.opened.connect(self._on_opened)
        services.chats.listed.connect(self.refresh)
        services.chat_files.opened.connect(self.open)
        services.chat_files.said.connect(guard.say)
        services.replies.busy_changed.connect(self._show_lamps)
        services.slots.changed.connect(self._show_lamps)

    def start(self) -> None:
        """Show an empty page that becomes a conversation with its first message."""
        self._panes.current.open(None)
        self._panes.current.composer.edit.setFocus()

    def open(self, conversation_id: int, message_id: int | None = None) -> None:
        """Show a conversation, at a message if given; what was searched for is marked there."""
        find = self._sidebar.search.text().strip() if message_id is not None else ""
        try:
            self._panes.open(conversation_id, message_id, find)
        except (AppError, LookupError) as error:
            self._guard.say(str(error), None)
            return
        if message_id is None:
            self._panes.current.composer.edit.setFocus()

    def open_beside(self, conversation_id: int) -> None:
        """Show a conversation in a pane of its own, beside the current one."""
        there = self._panes.pane_of(conversation_id)
        if there is None and self._panes.split() is None:
            return
        self.open(conversation_id)

    def refresh(self) -> None:
        """Show the conversations, or what a search found."""
        database = self._services.database
        if self._sidebar.is_searching():
            text = self._sidebar.search.text().strip()
            hits = self._guard.attempt(lambda: database.search(text))
            self._sidebar.set_rows(hit_rows(hits or []))
            return
        conversations = self._guard.attempt(database.conversations)
        self._sidebar.set_rows(chat_rows(conversations or [], self._services.slots.lamps()))

    def _show_lamps(self) -> None:
        self._sidebar.set_lamps(self._services.slots.lamps())

    def open_neighbour(self, step: int) -> None:
        """Open the conversation that many rows below the present one."""
        conversation_id = self._sidebar.neighbour(step)
        if conversation_id:
            self.open(conversation_id)

    def act(self, key: str, conversation_id: int) -> None:
        """Do an action of the table with a conversation."""
        chats = self._services.chats
        if not conversation_id:
            return
        if key == "chat.beside":
            self.open_beside(conversation_id)
        elif key == "chat.rename":
            self._sidebar.edit_title(conversation_id)
        elif key == "chat.pin":
            pinned = self._services.database.conversation(conversation_id).pinned
            self._guard.attempt(lambda: chats.change(conversation_id, pinned=not pinned))
        elif key == "chat.save":
            self._choose_file(conversation_id)
        elif key == "chat.delete":
            wants_to_ask = self._services.settings["ask_before_deleting"]
            (self._ask_and_delete if wants_to_ask else self._delete)(conversation_id)

    def _choose_file(self, conversation_id: int) -> None:
        """Let the person name the file that a conversation is saved in."""
        title = self._services.database.conversation(conversation_id).title or tr("New chat")
        name = re.sub(r'[\\/:*?"<>|\x00-\x1f]+', " ", title).strip(" .")[:80] or tr("New chat")
        folder = Path(self._services.settings["last_folder"] or Path.home())
        dialog = QFileDialog(self._sidebar.window(), tr("Save with its memory"), str(folder))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilter(tr("Chats with their memory (*{suffix})", suffix=SUFFIX))
        dialog.setDefaultSuffix(SUFFIX)
        dialog.selectFile(name + SUFFIX)
        files = self._services.chat_files
        dialog.fileSelected.connect(
            lambda chosen: self._guard.attempt(lambda: files.save(conversation_id, Path(chosen)))
        )
        dialog.open()

    def _rename(self, conversation_id: int, title: str) -> None:
        chats = self._services.chats
        self._guard.attempt(lambda: chats.change(conversation_id, title=title))
        pane = self._panes.pane_of(conversation_id)
        if pane is not None:
            pane.header.set_title(title)

    def empty_trash(self) -> None:
        """Remove for good what has been in the trash for longer than the person wants."""
        days = self._services.settings["trash_days"]
        self._guard.attempt(lambda: self._services.database.empty_trash(days))

    def _ask_and_delete(self, conversation_id: int) -> None:
        title = self._services.database.conversation(conversation_id).title or tr("New chat")
        box = QMessageBox(self._sidebar.window())
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.setWindowTitle(tr("Delete chat"))
        box.setText(tr("Move “{title}” to the trash?", title=title))
        delete = box.addButton(tr("Move to trash"), QMessageBox.ButtonRole.AcceptRole)
        box.addButton(tr("Keep it"), QMessageBox.ButtonRole.RejectRole)
        delete.clicked.connect(bound(self._delete, conversation_id))
        box.open()

    def _delete(self, conversation_id: int) -> None:
        chats = self._services.chats
        title = self._services.database.conversation(conversation_id).title
        self._guard.attempt(lambda: chats.trash(conversation_id))
        pane = self._panes.pane_of(conversation_id)
        if pane is not None:
            pane.open(None)

        def undo() -> None:
            self._guard.attempt(lambda: chats.restore(conversation_id))
            self.open(conversation_id)

        self._guard.say(tr("“{title}” is in the trash.", title=title or tr("New chat")), undo)

    def _on_opened(self, conversation_id: int) -> None:
        self._sidebar.mark(conversation_id)
        self._services.settings["last_conversation"] = conversation_id
