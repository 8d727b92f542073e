"""One pane: the head, the transcript or the welcome card, and the composer of a conversation."""

from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QGuiApplication,
    QMouseEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from app.chats.conversation import Conversation, Message
from app.services.everything import Services
from app.services.figures import speed, summary
from app.strings import count, tr
from app.ui.guard import Guard
from app.ui.message_acts import MessageActs
from app.ui.pane_engine import PaneEngine
from app.ui.pane_figures import PaneFigures
from app.ui.pane_params import PaneParams
from app.ui.theme import theme
from app.ui.widgets.composer import Composer
from app.ui.widgets.find_bar import FindBar
from app.ui.widgets.header import PaneHeader
from app.ui.widgets.pane_parts import Banner, EmptyPage, SystemPrompt
from app.ui.widgets.transcript import Transcript
from app.ui.widgets.welcome import Welcome


class ChatPane(QWidget):
    """Shows one conversation, or an empty page that becomes one with the first message.

    Signals:
        opened(int): another conversation is on show; 0 for a new one.
        link_wanted(str): a link was clicked.
        model_wanted(): the model chip was pressed.
        remedy_wanted(str): "choose" or "again", after a load that failed.
        pressed(): the mouse was pressed where nothing else takes it.
    """

    opened = Signal(int)
    link_wanted = Signal(str)
    model_wanted = Signal()
    remedy_wanted = Signal(str)
    pressed = Signal()

    def __init__(self, services: Services, guard: Guard, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("page")
        self.services = services
        self.guard = guard
        self.is_current = True
        self.conversation: Conversation | None = None
        self.asked = PaneParams(self)
        self._editing: Message | None = None
        self._live = ""
        self._fresh_draft = ""
        self.header = PaneHeader(self)
        self.transcript = Transcript(self)
        self.transcript.attention.describe = self._describe
        self.welcome = Welcome(self)
        self.empty = EmptyPage(self)
        self.pages = QStackedWidget(self)
        for page in (self.empty, self.transcript, self.welcome):
            self.pages.addWidget(page)
        self.system = SystemPrompt(self)
        self.banner = Banner(self)
        self.composer = Composer(self)
        self.acts = MessageActs(self)
        self.find_bar = FindBar(self.transcript, self)
        self.figures = PaneFigures(services.engine, self.composer, self.header.ring, self)
        self.engine = PaneEngine(self)
        self._arrange()
        self._connect()
        self.open(None)

    def _arrange(self) -> None:
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self.header)
        box.addWidget(self.pages, 1)
        self._foot = QVBoxLayout()
        self._foot.setSpacing(theme.px(8))
        for widget in (self.system, self.banner, self.composer):
            self._foot.addWidget(widget)
        box.addLayout(self._foot)
        self._restyle()

    def _connect(self) -> None:
        replies, chats = self.services.replies, self.services.chats
        self.composer.sent.connect(self.send)
        self.composer.stopped.connect(self.stop)
        self.composer.draft_changed.connect(self._keep_draft)
        self.composer.recalled.connect(self.acts.edit_question)
        self.composer.system_wanted.connect(self.system.toggle)
        self.system.changed.connect(lambda text: self.asked.keep(system=text))
        self.banner.cancelled.connect(self._end_editing)
        self.header.renamed.connect(self._rename)
        self.header.model_wanted.connect(self.model_wanted)
        self.transcript.link_activated.connect(self.link_wanted)
        chats.added.connect(self._on_added)
        chats.branched.connect(self._on_branched)
        replies.text_came.connect(self._on_text)
        replies.reading.connect(self._on_reading)
        replies.measured.connect(self._on_measured)
        replies.settled.connect(self._on_settled)
        replies.busy_changed.connect(self._show_running)
        self.engine.remedy_wanted.connect(self.remedy_wanted)
        self.find_bar.closed.connect(self.composer.edit.setFocus)
        theme.changed.connect(self._restyle)

    # ------------------------------------------------------------ opening

    @property
    def params(self) -> dict[str, Any]:
        """Return what the chat on show, or the one to come, asks of its answers."""
        return self.asked.values

    @property
    def conversation_id(self) -> int:
        """Return the id of the conversation on show, 0 for a new one."""
        return self.conversation.id if self.conversation else 0

    @property
    def leaf_id(self) -> int | None:
        """Return the last message of the branch on show, or None for an empty page."""
        return self.conversation.leaf_id if self.conversation else None

    def open(
        self, conversation_id: int | None, message_id: int | None = None, find: str = ""
    ) -> None:
        """Show a conversation from its end or at a message; None is a new, empty one.

        `find` is a text to mark in that message. Raises AppError or LookupError.
        """
        self._end_editing()
        self.find_bar.close_bar()
        if self.conversation is None:
            self._fresh_draft = self.composer.text()
        self.composer.flush_draft()
        self.asked.flush()
        database = self.services.database
        self.conversation = database.conversation(conversation_id) if conversation_id else None
        self.asked.begin(self.conversation)
        if self.conversation and message_id:
            self._go_to_branch_of(message_id)
        draft = self.conversation.draft if self.conversation else self._fresh_draft
        self.composer.set_text(draft)
        self.system.set_text(self.params.get("system", ""))
        self._load_branch()
        if message_id:
            self.transcript.go_to_message(message_id)
            self.transcript.mark_text(message_id, find)
        self.header.set_title(self.conversation.title if self.conversation else "")
        self.engine.show()
        self.opened.emit(self.conversation_id)

    def _go_to_branch_of(self, message_id: int) -> None:
        database = self.services.database
        if all(m.id != message_id for m in database.branch(self.conversation_id)):
            leaf = database.newest_leaf(message_id)
            self.conversation = database.update_conversation(self.conversation_id, leaf_id=leaf)

    def _load_branch(self) -> None:
        database = self.services.database
        messages = database.branch(self.conversation_id) if self.conversation else []
        running = self.services.replies.running.get(self.conversation_id)
        self.figures.set_branch(messages)
        self.transcript.set_messages(messages)
        if running is not None:
            message = self.transcript.message(running.message.id)
            stored = len(message.text) if message else 0
            self.transcript.append_text(running.message.id, running.text()[stored:])
            if not running.text():
                self.transcript.set_reading(running.message.id, self.engine.reading())
        self.show_page()
        self._show_running()

    def show_page(self) -> None:
        """Show the messages, or what stands in their place."""
        if self.transcript.messages:
            self.pages.setCurrentWidget(self.transcript)
        elif self.services.engine.state in ("empty", "failed") and not self.services.engine.path:
            self.pages.setCurrentWidget(self.welcome)
        else:
            self.empty.show_engine(self.services.engine)
            self.pages.setCurrentWidget(self.empty)

    def show_above_composer(self, card: QWidget) -> None:
        """Put a card between the conversation and the composer."""
        self._foot.insertWidget(0, card)

    def keep_fresh_draft(self) -> int:
        """Store what stands unsent on an empty page as a chat of its own; return it, or 0.

        That is a draft, or the unfinished text of a grammar.
        """
        self.asked.flush()
        text, made = self.composer.text(), None
        has_draft = text.strip() or self.params.get("constraint_draft", {}).get("text", "").strip()
        if self.conversation is None and has_draft:
            made = self.guard.attempt(
                lambda: self.services.chats.start(params=self.params, draft=text)
            )
        return made.id if made is not None else 0

    # ------------------------------------------------------------ acts

    def send(self, text: str) -> None:
        """Send a message; the first one makes the conversation. It waits while an answer runs."""
        if self.is_running() or self.composer.blocked:
            self.composer.set_text(text)
            return
        editing, self._editing = self._editing, None
        self.banner.hide()
        if self.conversation is None:
            self.conversation = self.guard.attempt(
                lambda: self.services.chats.start(params=self.params)
            )
            if self.conversation is None:
                self.composer.set_text(text)
                return
            self.opened.emit(self.conversation_id)
        newest = self._newest_id()
        if editing is not None:
            self.guard.attempt(lambda: self.services.chats.edit(editing, text))
        else:
            self.guard.attempt(lambda: self.services.chats.ask(self.conversation_id, text))
        if self._newest_id() == newest:  # the disk refused: what was typed must not be lost
            self._take_back(text, editing)
            return
        self._keep_draft("")
        self.refresh_conversation()

    def _newest_id(self) -> int:
        return max((message.id for message in self.transcript.messages), default=0)

    def _take_back(self, text: str, editing: Message | None) -> None:
        """Put a message that could not be stored into the box again."""
        if editing is not None:
            self.begin_editing(editing)
        self.composer.set_text(text)

    def stop(self) -> None:
        """Stop the answer of this pane and keep what came."""
        self.services.chats.stop(self.conversation_id)

    def is_running(self) -> bool:
        """Tell whether an answer of this pane runs."""
        return self.services.replies.is_running(self.conversation_id)

    def set_current(self, is_current: bool) -> None:
        """Have the attention of the person, or not: Esc and what is said of models belong here."""
        if is_current != self.is_current:
            self.is_current = is_current
            self.composer.show_key(is_current)
            self.engine.show_card()

    def set_reading_width(self, characters: int) -> None:
        """Limit the lines of an answer to that many characters."""
        self.transcript.set_reading_width(characters)
        self._fit_foot()

    def begin_editing(self, message: Message) -> None:
        """Put a message into the composer; sending makes another version of it."""
        self.composer.flush_draft()
        self._editing = message
        self.composer.set_text(self.transcript.text_of(message))
        self.composer.edit.setFocus()
        own = message.role == "user"
        self.banner.say(
            tr("Editing your message makes another version of it.")
            if own
            else tr("Editing the answer makes another version of it.")
        )

    def _end_editing(self) -> None:
        """Leave editing; what stood in the box before is there again."""
        if self._editing is not None:
            self._editing = None
            self.composer.set_text(self.conversation.draft if self.conversation else "")
        self.banner.hide()

    def _rename(self, title: str) -> None:
        if self.conversation is not None:
            self.guard.attempt(
                lambda: self.services.chats.change(self.conversation_id, title=title)
            )
            self.refresh_conversation()

    def _keep_draft(self, text: str) -> None:
        if self.conversation is None or self._editing is not None:
            return
        if text != self.conversation.draft:
            self.guard.attempt(lambda: self.services.chats.change(self.conversation_id, draft=text))
            self.conversation = self.services.database.conversation(self.conversation_id)

    def copy(self, text: str) -> None:
        """Put a text on the clipboard and say so."""
        if text:
            QGuiApplication.clipboard().setText(text)
            self.guard.say(tr("Copied."))

    # ------------------------------------------------------------ what happens

    def refresh_conversation(self) -> None:
        """Take over what is stored of the conversation now."""
        if self.conversation is not None:
            self.conversation = self.services.database.conversation(self.conversation_id)
            self.header.set_title(self.conversation.title)

    def _on_added(self, conversation_id: int, message: Message) -> None:
        if conversation_id != self.conversation_id:
            return
        self.pages.setCurrentWidget(self.transcript)
        self.transcript.add_message(message)
        if message.state == "running":
            self.transcript.set_reading(message.id, self.engine.reading())
        self._live = ""
        self.refresh_conversation()
        self._show_running()

    def _on_branched(self, conversation_id: int) -> None:
        if conversation_id == self.conversation_id:
            self.refresh_conversation()
            self._load_branch()

    def _on_text(self, conversation_id: int, message_id: int, text: str) -> None:
        if conversation_id == self.conversation_id:
            self.transcript.append_text(message_id, text)

    def _on_reading(self, conversation_id: int, message_id: int, progress: Any) -> None:
        if conversation_id == self.conversation_id:
            self.figures.set_prompt(progress.n_prompt)
            self.transcript.set_reading(message_id, self.engine.reading())

    def _on_measured(
        self, conversation_id: int, message_id: int, n_tokens: int, rate: float
    ) -> None:
        if conversation_id == self.conversation_id:
            self._live = tr("{n} tokens · {rate}/s", n=count(n_tokens), rate=speed(rate))
            self.transcript.set_figures(message_id, self._live)
            self.figures.set_live(n_tokens)

    def _on_settled(self, conversation_id: int, message: Message) -> None:
        if conversation_id != self.conversation_id:
            return
        self.transcript.update_message(message)
        self.figures.set_branch(self.transcript.messages)
        if message.state == "running":
            self.transcript.set_reading(message.id, self.engine.reading())
        self.refresh_conversation()
        self._show_running()
        self.figures.show()
        self._announce(message)

    def _announce(self, message: Message) -> None:
        """Tell a screen reader that an answer is there, or that it failed."""
        if not QAccessible.isActive() or message.state == "running":
            return
        error = message.record.get("error", {}).get("message", "")
        event = QAccessibleAnnouncementEvent(self.transcript, error or message.text)
        if error:
            event.setPoliteness(QAccessible.AnnouncementPoliteness.Assertive)
        QAccessible.updateAccessibility(event)

    # ------------------------------------------------------------ figures

    def _describe(self, message: Message) -> tuple[tuple[int, int], str]:
        """Return what the row under a message shows: its place among versions, its figures."""
        if message.state == "running":
            return (1, 1), self._live
        versions = [version.id for version in self.services.database.siblings(message.id)]
        place = versions.index(message.id) + 1 if message.id in versions else 1
        return (place, max(1, len(versions))), summary(message.record)

    def _show_running(self) -> None:
        self.composer.set_running(self.is_running())

    # ------------------------------------------------------------ layout

    def _restyle(self) -> None:
        self.setMinimumSize(theme.px(260), theme.px(220))
        self._fit_foot()

    def _fit_foot(self) -> None:
        width = self.transcript.column_width(self.width())
        side = max(theme.px(10), (self.width() - width) // 2 - theme.px(14))
        self._foot.setContentsMargins(side, theme.px(4), side, theme.px(14))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_foot()
        self.find_bar.place()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.pressed.emit()
