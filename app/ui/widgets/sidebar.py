"""The left side: search, New chat, and the conversations in groups."""

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QListView,
    QMenu,
    QVBoxLayout,
    QWidget,
)

from app.strings import tr
from app.ui.actions import ACTIONS
from app.ui.bound import bound
from app.ui.theme import theme
from app.ui.widgets.chat_list import ROW, ChatDelegate, ChatListModel, ChatRow
from app.ui.widgets.controls import IconButton, button, label

_MENU = ("chat.beside", "chat.rename", "chat.pin", "chat.save", "chat.delete")


class Sidebar(QFrame):
    """Lists conversations and finds them.

    Signals:
        chosen(int, object): open a conversation, at a message id or None.
        started(): the person wants a new chat.
        searched(str): the search text changed (a moment after the last key).
        renamed(int, str): another title for a conversation.
        action(str, int): an action of the table for a conversation.
        menu_wanted(): the menu button was pressed.
    """

    chosen = Signal(int, object)
    started = Signal()
    searched = Signal(str)
    renamed = Signal(int, str)
    action = Signal(str, int)
    menu_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("sidebar")
        self.search = QLineEdit(self)
        self.search.setPlaceholderText(tr("Search chats"))
        self.search.setAccessibleName(tr("Search chats"))
        self.search.setClearButtonEnabled(False)
        self.search.installEventFilter(self)
        self.hint = label(ACTIONS["chat.search"].shown_keys(), "secondary", self.search)
        self.hint.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.start = button(tr("New chat"), "primary", ACTIONS["chat.start"].tip(), self)
        self.model = ChatListModel()
        self.model.renamed = self.renamed.emit
        self.list = _ChatView(self)
        self.list.setModel(self.model)
        self.list.setItemDelegate(ChatDelegate(self.list))
        self.menu = IconButton("menu", tr("Menu"), self)
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(120)
        self._turning = QTimer(self)
        self._turning.setInterval(80)
        self._turning.timeout.connect(self.list.viewport().update)
        self._current = 0
        self._connect()
        self._arrange()

    def _connect(self) -> None:
        self.start.clicked.connect(self.started)
        self.search.textChanged.connect(self._on_search_changed)
        self._later.timeout.connect(lambda: self.searched.emit(self.search.text().strip()))
        self.list.clicked.connect(self._choose)
        self.list.activated.connect(self._choose)
        self.list.customContextMenuRequested.connect(self._open_menu)
        self.menu.clicked.connect(self.menu_wanted)
        theme.changed.connect(self._restyle)

    def _arrange(self) -> None:
        self._box = QVBoxLayout(self)
        self._box.addWidget(self.search)
        self._box.addWidget(self.start)
        self._box.addWidget(self.list, 1)
        foot = QHBoxLayout()
        foot.addWidget(self.menu)
        foot.addStretch(1)
        self._box.addLayout(foot)
        self._restyle()

    def _restyle(self) -> None:
        self._box.setContentsMargins(theme.px(10), theme.px(13), theme.px(10), theme.px(6))
        self._box.setSpacing(theme.px(10))
        self.start.setFixedHeight(theme.px(38))
        self.search.setFixedHeight(theme.px(38))
        self.list.doItemsLayout()
        self.list.show_note(not self.model.rows)
        self._place_hint()

    # ------------------------------------------------------------ content

    def set_rows(self, rows: list[ChatRow]) -> None:
        """Show other rows and keep the present conversation marked."""
        self.model.set_rows(rows)
        self.list.show_note(not rows)
        self.mark(self._current)
        self._turn()

    def set_lamps(self, lamp: Callable[[int], str]) -> None:
        """Show other lamps on the rows that are there."""
        self.model.set_lamps(lamp)
        self._turn()

    def _turn(self) -> None:
        """Let the lamps of running answers turn while there are any."""
        rows = self.model.rows
        is_turning = theme.animated and any(row.lamp == "running" for row in rows)
        if is_turning != self._turning.isActive():
            self._turning.start() if is_turning else self._turning.stop()

    def mark(self, conversation_id: int) -> None:
        """Mark the conversation that is open."""
        self._current = conversation_id
        row = self.model.row_of(conversation_id)
        if row < 0:
            self.list.clearSelection()
        elif self.list.currentIndex().row() != row or not self.list.selectedIndexes():
            self.list.setCurrentIndex(self.model.index(row))

    def neighbour(self, step: int) -> int:
        """Return the conversation that many rows away from the marked one, or 0."""
        rows = [row for row in self.model.rows if row.kind != "section"]
        ids = [row.conversation_id for row in rows]
        if self._current not in ids:
            return ids[0] if ids else 0
        place = ids.index(self._current) + step
        return ids[place] if 0 <= place < len(ids) else 0

    def marked(self) -> int:
        """Return the conversation that the keyboard marks in the list, or 0."""
        row = self.list.currentIndex().data(ROW)
        return int(row.conversation_id) if row is not None else 0

    def edit_title(self, conversation_id: int) -> None:
        """Let the person write another title in the list."""
        row = self.model.row_of(conversation_id)
        if row >= 0:
            self.list.edit(self.model.index(row))

    def focus_search(self) -> None:
        """Put the cursor into the search field."""
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    def is_searching(self) -> bool:
        """Tell whether hits are on show instead of all conversations."""
        return bool(self.search.text().strip())

    # ------------------------------------------------------------ acts

    def _on_search_changed(self) -> None:
        self._later.start()
        self._place_hint()

    def _choose(self, index: QModelIndex) -> None:
        row = index.data(ROW)
        if row is not None and row.kind != "section":
            self.chosen.emit(row.conversation_id, row.message_id)

    def _open_menu(self, point: QPoint) -> None:
        row = self.list.indexAt(point).data(ROW)
        if row is None or row.kind == "section":
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for key in _MENU:
            menu.addAction(
                tr(ACTIONS[key].label),
                bound(self.action.emit, key, row.conversation_id),
            )
        menu.popup(self.list.viewport().mapToGlobal(point))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.search and event.type() == QEvent.Type.Resize:
            self._place_hint()
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() == Qt.Key.Key_Escape and self.search.text():
                self.search.clear()
                return True
            if event.key() == Qt.Key.Key_Down:
                self.list.setFocus(Qt.FocusReason.TabFocusReason)
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._choose_first()
                return True
        return False

    def _choose_first(self) -> None:
        self._later.stop()
        self.searched.emit(self.search.text().strip())
        rows: list[Any] = [row for row in self.model.rows if row.kind != "section"]
        if rows:
            self.chosen.emit(rows[0].conversation_id, rows[0].message_id)

    def _place_hint(self) -> None:
        self.hint.setVisible(not self.search.text())
        self.hint.adjustSize()
        x = self.search.width() - self.hint.width() - theme.px(11)
        self.hint.move(x, (self.search.height() - self.hint.height()) // 2)


class _ChatView(QListView):
    """The list itself: one column, hover, rename with F2, no plain Delete key."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAccessibleName(tr("Chats"))
        self.setMouseTracking(True)
        self.setUniformItemSizes(False)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.setLayoutMode(QListView.LayoutMode.SinglePass)
        self.setDragEnabled(True)
        self.setDragDropMode(QAbstractItemView.DragDropMode.DragOnly)
        self.note = label(tr("Your chats will be listed here."), "secondary", self)
        self.note.setWordWrap(True)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_note()

    def show_note(self, is_empty: bool) -> None:
        """Say what belongs here while there is nothing."""
        self.note.setVisible(is_empty)
        self._place_note()

    def _place_note(self) -> None:
        inset = theme.px(8)
        self.note.setGeometry(inset, theme.px(4), max(40, self.width() - 2 * inset), theme.px(40))
