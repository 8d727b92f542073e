"""One to four panes in the middle of the window: split, closed, focused, one of them current."""

import json
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import (
    QDragEnterEvent,
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
)
from PySide6.QtWidgets import QApplication, QSplitter, QVBoxLayout, QWidget

from app.errors import AppError
from app.strings import tr
from app.ui.pages.chat import ChatPane
from app.ui.theme import theme
from app.ui.widgets.chat_list import dragged_chat
from app.ui.widgets.drop_shade import DropShade

MOST = 4
_BESIDE, _BELOW = 340, 260  # width and height in design pixels that a pane needs beside another
_SIDES = {"left": 0, "right": 1, "top": 0, "bottom": 1}  # place of the pane that comes, of two
_ACROSS, _DOWN = Qt.Orientation.Horizontal, Qt.Orientation.Vertical


class Panes(QWidget):
    """A tree of splitters with panes as its leaves. The chats live on when a pane is closed.

    Signals:
        made(ChatPane): another pane is there.
        current_changed(ChatPane): another pane has the attention.
        opened(int): the current pane shows another conversation; 0 for a new one.
        said(str): a short line for the person.
    """

    made = Signal(object)
    current_changed = Signal(object)
    opened = Signal(int)
    said = Signal(str)

    def __init__(self, make_pane: Callable[[QWidget], ChatPane], parent: QWidget) -> None:
        super().__init__(parent)
        self._make_pane = make_pane
        self._root = _splitter(_ACROSS)
        self.shade = DropShade(self)
        self._box = QVBoxLayout(self)
        self._box.setContentsMargins(0, 0, 0, 0)
        self._box.addWidget(self._root)
        self.setAcceptDrops(True)
        self.current = self._make()
        self._root.addWidget(self.current)
        self._show_places()
        application = QApplication.instance()
        if isinstance(application, QApplication):
            application.focusChanged.connect(self._on_focus_changed)

    def all(self) -> list[ChatPane]:
        """Return the panes, from left to right and top to bottom."""
        return _leaves(self._root)

    def pane_of(self, conversation_id: int) -> ChatPane | None:
        """Return the pane that shows a conversation, or None."""
        shown = [pane for pane in self.all() if pane.conversation_id == conversation_id]
        return shown[0] if shown and conversation_id else None

    # ------------------------------------------------------------ acts

    def open(self, conversation_id: int, message_id: int | None = None, find: str = "") -> None:
        """Show a conversation: where it is on show already, else in the current pane.

        Raises AppError or LookupError; what was on show stays then.
        """
        there = self.pane_of(conversation_id)
        if there is not None:
            self.set_current(there)
        if there is None or message_id is not None:
            self.current.open(conversation_id, message_id, find)

    def split(self, side: str = "", pane: ChatPane | None = None) -> ChatPane | None:
        """Put another pane, with a new chat, beside or below `pane`.

        `side` is left, right, top, bottom, or "" for where there is room. Without `pane` it is the
        current one, or the largest if that has no room. Returns the new pane, or None when there
        are four already.
        """
        pane = pane or (self.current if side else self._roomy())
        if len(self.all()) >= MOST:
            self.said.emit(tr("Four panes are the most; close one first (Ctrl+W)."))
            return None
        side = side or ("right" if pane.width() >= 2 * theme.px(_BESIDE) else "bottom")
        parent = _make_room(pane, _ACROSS if side in ("left", "right") else _DOWN)
        place, sizes = parent.indexOf(pane), parent.sizes()
        whole = pane.width() if parent.orientation() == _ACROSS else pane.height()
        made = self._make()
        parent.insertWidget(place + _SIDES[side], made)
        parent.setSizes([*sizes[:place], whole // 2, whole // 2, *sizes[place + 1 :]])
        self.set_current(made)
        return made

    def _roomy(self) -> ChatPane:
        """Return the current pane if it has room for two, else the largest."""
        pane = self.current
        if pane.width() >= 2 * theme.px(_BESIDE) or pane.height() >= 2 * theme.px(_BELOW):
            return pane
        return max(self.all(), key=lambda pane: pane.width() * pane.height())

    def close_pane(self, pane: ChatPane | None = None) -> None:
        """Close a pane (the current one), never its chat; the last pane stays."""
        pane = pane or self.current
        panes = self.all()
        if len(panes) == 1:
            self.said.emit(tr("This is the only pane."))
            return
        pane.composer.flush_draft()
        pane.keep_fresh_draft()
        place = panes.index(pane)
        parent = pane.parentWidget()
        pane.hide()
        pane.setParent(None)
        pane.deleteLater()
        if isinstance(parent, QSplitter):
            self._tidy(parent)
        self.set_current(panes[place - 1] if place else panes[1])

    def step(self, step: int) -> None:
        """Go to the pane that many places further, around the end."""
        panes = self.all()
        self.set_current(panes[(panes.index(self.current) + step) % len(panes)])

    def set_current(self, pane: ChatPane) -> None:
        """Give a pane the attention and its box the keyboard."""
        self._turn_to(pane)
        pane.composer.edit.setFocus()

    # ------------------------------------------------------------ the tree

    def _make(self) -> ChatPane:
        pane = self._make_pane(self)
        pane.opened.connect(lambda chat, pane=pane: self._on_opened(pane, chat))
        pane.pressed.connect(lambda pane=pane: self.set_current(pane))
        pane.header.close_button.clicked.connect(lambda _=False, pane=pane: self.close_pane(pane))
        self.made.emit(pane)
        return pane

    def _tidy(self, splitter: QSplitter) -> None:
        """Take out a splitter that holds only one thing."""
        parent = splitter.parentWidget()
        if splitter.count() == 1 and isinstance(parent, QSplitter):
            sizes = parent.sizes()
            only = _part(splitter, 0)
            parent.replaceWidget(parent.indexOf(splitter), only)
            only.show()
            parent.setSizes(sizes)
            splitter.deleteLater()
        inner = _part(self._root, 0)
        if self._root.count() == 1 and isinstance(inner, QSplitter):
            self._box.replaceWidget(self._root, inner)
            self._root.deleteLater()
            self._root = inner
            inner.show()

    def _turn_to(self, pane: ChatPane) -> None:
        changed = pane is not self.current
        self.current = pane
        self._show_places()
        if changed:
            self.current_changed.emit(pane)
            self.opened.emit(pane.conversation_id)

    def _show_places(self) -> None:
        """Tell each pane whether it has the attention and which window buttons it carries."""
        panes = self.all()
        last = _top_right(self._root)
        for pane in panes:
            pane.header.show_place(
                is_first=pane is panes[0],
                is_last=pane is last,
                is_one_of_many=len(panes) > 1,
                is_current=pane is self.current,
            )
            pane.set_current(pane is self.current)

    def _on_opened(self, pane: ChatPane, conversation_id: int) -> None:
        if pane is self.current:
            self.opened.emit(conversation_id)

    def _on_focus_changed(self, _old: QWidget | None, new: QWidget | None) -> None:
        while new is not None and not isinstance(new, ChatPane):
            new = new.parentWidget()
        if new is not None and new is not self.current and self.isAncestorOf(new):
            self._turn_to(new)

    # ------------------------------------------------------------ remembering

    def state(self) -> str:
        """Return arrangement and conversations as text for the settings."""
        return json.dumps(_described(self._root))

    def restore(self, state: str) -> None:
        """Arrange the panes as `state` says; a damaged one, or a chat that is gone, is left out."""
        try:
            tree = json.loads(state) if state else None
            if isinstance(tree, dict):
                self._build(self.current, tree)
        except (ValueError, TypeError, KeyError, RecursionError):
            return

    def _build(self, pane: ChatPane, tree: Any) -> None:
        if isinstance(tree, int):
            try:
                pane.open(tree or None)
            except (AppError, LookupError):
                pane.open(None)
            return
        side = "right" if tree["across"] else "bottom"
        items = [item for item in tree["items"] if isinstance(item, (int, dict))]
        places = [pane]
        for _ in items[1:]:
            made = self.split(side, places[-1])
            if made is not None:
                places.append(made)
        parent = pane.parentWidget()
        if isinstance(parent, QSplitter) and parent.count() == len(places):
            parent.setSizes([int(size) for size in tree["sizes"]])
        for place, item in zip(places, items, strict=False):
            self._build(place, item)

    # ------------------------------------------------------------ dropping chats

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dragged_chat(event.mimeData()):
            event.acceptProposedAction()

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        pane, side = self._target(event.position().toPoint())
        corner = pane.mapTo(self, QPoint(0, 0))
        self.shade.show_on(pane.rect().translated(corner), side)
        event.acceptProposedAction()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self.shade.hide()

    def dropEvent(self, event: QDropEvent) -> None:
        self.shade.hide()
        conversation_id = dragged_chat(event.mimeData())
        pane, side = self._target(event.position().toPoint())
        if not conversation_id:
            return
        event.acceptProposedAction()
        there = self.pane_of(conversation_id)
        if there is not None and there is not pane and side:
            self.close_pane(there)
        target = self.split(side, pane) if side and there is not pane else pane
        if target is not None:
            self.set_current(target)
            self.open(conversation_id)

    def _target(self, point: QPoint) -> tuple[ChatPane, str]:
        """Return the pane under a point and the half of it, "" for the middle: no splitting."""
        panes = self.all()
        pane = next((p for p in panes if p.rect().contains(p.mapFrom(self, point))), self.current)
        inside = pane.mapFrom(self, point)
        x, y = inside.x() / max(1, pane.width()), inside.y() / max(1, pane.height())
        distances = {"left": x, "right": 1 - x, "top": y, "bottom": 1 - y}
        side = min(distances, key=lambda name: distances[name])
        is_full = len(panes) >= MOST
        return pane, "" if is_full or distances[side] > 0.3 else side


def _splitter(orientation: Qt.Orientation) -> QSplitter:
    made = QSplitter(orientation)
    made.setChildrenCollapsible(False)
    made.setHandleWidth(1)
    return made


def _make_room(pane: ChatPane, orientation: Qt.Orientation) -> QSplitter:
    """Return the splitter of that orientation in which a pane stands, made if need be."""
    parent = pane.parentWidget()
    if not isinstance(parent, QSplitter):
        raise LookupError("the pane stands in no splitter")
    if parent.count() == 1:
        parent.setOrientation(orientation)
    if parent.orientation() == orientation:
        return parent
    inner, sizes = _splitter(orientation), parent.sizes()
    parent.replaceWidget(parent.indexOf(pane), inner)
    inner.addWidget(pane)
    pane.show()
    parent.setSizes(sizes)
    return inner


def _part(splitter: QSplitter, place: int) -> QWidget:
    part = splitter.widget(place)
    if part is None:
        raise LookupError(f"the splitter has no part {place}")
    return part


def _leaves(splitter: QSplitter) -> list[ChatPane]:
    out: list[ChatPane] = []
    for i in range(splitter.count()):
        widget = splitter.widget(i)
        if isinstance(widget, QSplitter):
            out += _leaves(widget)
        elif isinstance(widget, ChatPane):
            out.append(widget)
    return out


def _top_right(splitter: QSplitter) -> QWidget:
    across = splitter.orientation() == _ACROSS
    corner = _part(splitter, splitter.count() - 1 if across else 0)
    return _top_right(corner) if isinstance(corner, QSplitter) else corner


def _described(widget: QWidget) -> Any:
    if isinstance(widget, QSplitter):
        items = [_described(_part(widget, i)) for i in range(widget.count())]
        if len(items) == 1:
            return items[0]
        across = widget.orientation() == _ACROSS
        return {"across": across, "sizes": widget.sizes(), "items": items}
    return widget.conversation_id if isinstance(widget, ChatPane) else 0
