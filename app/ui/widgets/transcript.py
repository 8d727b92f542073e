"""The scrolling conversation: only messages near the viewport are built, the rest are heights."""

from dataclasses import replace
from typing import Any

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractScrollArea, QPushButton, QWidget

from app.strings import tr
from app.ui.theme import theme
from app.ui.widgets.attention import Attention
from app.ui.widgets.heights import HeightTree
from app.ui.widgets.message import MessageView
from app.ui.widgets.pointer import Pointer
from app.ui.widgets.reading import Reading

_NEAR_BOTTOM = 24  # pixels from the end that still count as "at the bottom"


class Transcript(QAbstractScrollArea):
    """Shows a branch of messages and follows a running answer while it is at the bottom.

    A message is any object with id, role, text, state and record. Work per streamed piece does
    not depend on how many messages there are.

    Signals:
        action(str, message): an action of the row under a message.
        sibling(message, int): go to the version that many steps away.
        link_activated(str): a link was clicked.
    """

    action = Signal(str, object)
    sibling = Signal(object, int)
    link_activated = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QAbstractScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(tr("Conversation"))
        self.viewport().setObjectName("page")
        self.viewport().setAutoFillBackground(False)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.messages: list[Any] = []
        self.following = True
        self.reading_width = 0  # characters; 0 = the default of 72
        self._order: dict[Any, int] = {}
        self._heights = HeightTree()
        self._views: dict[int, MessageView] = {}
        self._streamed: dict[Any, list[str]] = {}
        self._placing = False
        self.pointer = Pointer(self)
        self.pointer.link_activated.connect(self.link_activated)
        self.attention = Attention(self)
        self.attention.triggered.connect(self.action)
        self.attention.sibling.connect(self.sibling)
        self.row = self.attention.row
        self.newest = QPushButton(tr("↓ newest"), self)
        self.newest.setObjectName("chip")
        self.newest.setAccessibleName(tr("Go to the newest line"))
        self.newest.clicked.connect(self.go_to_newest)
        self.newest.hide()
        self.verticalScrollBar().setSingleStep(theme.px(40))
        theme.changed.connect(self._restyle)

    # ------------------------------------------------------------ content

    def set_messages(self, messages: list[Any]) -> None:
        """Show another branch, from its end."""
        for view in self._views.values():
            view.deleteLater()
        self._views.clear()
        self._streamed = {m.id: [m.text] for m in messages if m.state == "running"}
        self.messages = list(messages)
        self._order = {message.id: i for i, message in enumerate(messages)}
        per_line = max(20, self.column()[1] // theme.px(7))
        self._heights = HeightTree([_estimate(m, per_line) for m in messages])
        self.pointer.clear()
        self.pointer.views = self._views
        self.attention.forget()
        self.following = True
        self._place()

    def add_message(self, message: Any) -> None:
        """Add a message at the end and go there."""
        if message.state == "running":
            self._streamed[message.id] = [message.text]
        self._order[message.id] = len(self.messages)
        self.messages.append(message)
        self._heights.append(_estimate(message, 80))
        self.attention.forget()
        self.following = True
        self._place()

    def append_text(self, message_id: Any, text: str) -> None:
        """Add streamed text to a running message, shown or not."""
        self._streamed.setdefault(message_id, []).append(text)
        view = self.view_of(message_id)
        if view is not None:
            if view.has_stray_end(text):
                view.message = replace(view.message, text="".join(self._streamed[message_id]))
                view.restyle()
            else:
                view.append(text)
            self._settle(view)

    def set_reading(self, message_id: Any, reading: Reading | None) -> None:
        """Show how far the prompt of a running message is read."""
        view = self.view_of(message_id)
        if view is not None:
            view.set_reading(reading)
            self._settle(view)

    def update_message(self, message: Any) -> None:
        """Take over another state or record of a message that is here."""
        order = self._order.get(message.id)
        if order is None:
            return
        self.messages[order] = message
        if message.state != "running":
            self._streamed.pop(message.id, None)
        elif message.id not in self._streamed:
            self._streamed[message.id] = [message.text]
        view = self._views.get(order)
        if view is not None:
            view.update_message(message)
            self._settle(view)
        self._place()

    def message(self, message_id: Any) -> Any:
        """Return a message of this branch by id, or None."""
        order = self._order.get(message_id)
        return None if order is None else self.messages[order]

    def text_of(self, message: Any) -> str:
        """Return the text of a message as it is now, with what was streamed."""
        return "".join(self._streamed.get(message.id, [message.text]))

    def set_figures(self, message_id: Any, figures: str) -> None:
        """Show live figures beside the running message."""
        self.attention.set_figures(message_id, figures)

    def set_reading_width(self, characters: int) -> None:
        """Limit the lines to that many characters."""
        self.reading_width = characters
        self._place()

    def n_built(self) -> int:
        """Return how many messages are built as widgets now."""
        return len(self._views)

    # ------------------------------------------------------------ scrolling

    def go_to_newest(self) -> None:
        """Scroll to the end and follow it."""
        self.following = True
        self._place()

    def go_to_message(self, message_id: Any, takes_focus: bool = True) -> None:
        """Scroll a message of this branch into view and give it the focus."""
        order = self._order.get(message_id)
        if order is None:
            return
        self.following = False
        self._set_value(self._heights.start(order))
        self._place()
        view = self._views.get(order)
        if view is not None and takes_focus:
            view.setFocus(Qt.FocusReason.OtherFocusReason)

    def mark_text(self, message_id: Any, text: str, nth: int = 0) -> None:
        """Select the nth place of a text in a message that is on show, and scroll it into view."""
        view = self.view_of(message_id)
        if view is not None and text:
            view.show_all()
        top = self.pointer.select_text(self._order[message_id], text, nth) if view else -1
        if view is not None and top >= 0:
            self.following = False
            wanted = self._heights.start(self._order[message_id]) + top
            self._set_value(max(0, wanted - self.viewport().height() // 3))
            self._place()

    def _set_value(self, value: int) -> None:
        bar = self.verticalScrollBar()
        self._placing = True
        total, height = self._heights.total() + theme.px(16), self.viewport().height()
        bar.setRange(0, max(0, total - height))
        bar.setPageStep(height)
        bar.setValue(value)
        self._placing = False

    def scrollContentsBy(self, _dx: int, _dy: int) -> None:
        if not self._placing:
            bar = self.verticalScrollBar()
            self.following = bar.value() >= bar.maximum() - _NEAR_BOTTOM
            self._place()

    # ------------------------------------------------------------ layout

    def column(self) -> tuple[int, int]:
        """Return left edge and width of the text, in pixels."""
        width = self.column_width(self.width())
        return (self.width() - width) // 2, width

    def column_width(self, whole: int) -> int:
        """Return the width of the text on a page that is `whole` pixels wide."""
        limit = round((self.reading_width or 72) * theme.px(8.75))
        return max(theme.px(160), min(whole - 2 * theme.px(22), limit))

    def _place(self) -> None:
        """Build what is near the viewport, keep the line under the eye where it is."""
        height = self.viewport().height()
        if self._placing or not self.messages or height <= 0:
            self._drop_views(range(0))
            self.attention.show()
            return
        self._placing = True
        self.viewport().setUpdatesEnabled(False)
        margin = height // 2
        if self.following:
            first = self._build_upward(len(self.messages), height + margin)
            last = len(self.messages) - 1
            value = self._heights.total() + theme.px(16) - height
        else:
            value = self.verticalScrollBar().value()
            anchor = self._heights.find(value)
            offset = value - self._heights.start(anchor)
            last = self._build_downward(anchor, offset + height + margin)
            first = self._build_upward(anchor, margin)
            value = self._heights.start(anchor) + min(offset, self._heights[anchor])
        self._drop_views(range(first, last + 1))
        self._set_value(value)
        self._move_views()
        self.viewport().setUpdatesEnabled(True)
        self._placing = False

    def _build_downward(self, first: int, room: int) -> int:
        """Build from `first` on until `room` pixels are filled; return the last one built."""
        order = first
        while True:
            room -= self._build(order)
            if room <= 0 or order == len(self.messages) - 1:
                return order
            order += 1

    def _build_upward(self, end: int, room: int) -> int:
        """Build from before `end` upward until `room` pixels are filled; return the first one."""
        order = end
        while order > 0 and room > 0:
            order -= 1
            room -= self._build(order)
        return order

    def _build(self, order: int) -> int:
        """Make sure that a message is built, and return its height in pixels."""
        view = self._views.get(order)
        if view is None:
            message = self.messages[order]
            if message.id in self._streamed:
                message = replace(message, text="".join(self._streamed[message.id]))
            view = MessageView(message, self.pointer, self.viewport())
            view.height_changed.connect(self._on_height_changed)
            view.remedy.connect(lambda name, m=message: self.action.emit(f"message.{name}", m))
            view.focused.connect(lambda m=message: self._on_focused(m))
            view.hovered.connect(lambda m=message: self.attention.turn_to(m))
            view.menu_wanted.connect(lambda at, m=message: self.attention.open_menu(m, at))
            view.installEventFilter(self)
            self._views[order] = view
            view.lower()
        height = view.set_column(*self.column())
        self._heights[order] = height
        return height

    def _move_views(self) -> None:
        top, width = self.verticalScrollBar().value(), self.viewport().width()
        for order, view in list(self._views.items()):
            y = self._heights.start(order) - top
            view.setGeometry(0, y, width, self._heights[order])
            if view.isHidden():
                view.setVisible(True)
        self.attention.show()
        self._show_newest()

    def _drop_views(self, keep: range) -> None:
        for order in [o for o in self._views if o not in keep]:
            view = self._views[order]
            if view.hasFocus() or view.isAncestorOf(self.focusWidget() or self):
                continue
            del self._views[order]
            view.deleteLater()

    def _settle(self, view: MessageView) -> None:
        """Take over the height of one message after its content changed."""
        order = self._order[view.message.id]
        height = view.needed_height()
        if height == self._heights[order]:
            return
        self._heights[order] = height
        if order < len(self.messages) - 1:
            self._place()
            return
        value = self.verticalScrollBar().value()
        if self.following:
            value = self._heights.total() + theme.px(16) - self.viewport().height()
        self._set_value(value)
        self._move_views()

    def view_of(self, message_id: Any) -> MessageView | None:
        """Return the widget of a message, or None while it is not built."""
        return self._views.get(self._order.get(message_id, -1))

    def _on_height_changed(self) -> None:
        view = self.sender()
        if isinstance(view, MessageView) and view.message.id in self._order:
            self._settle(view)

    def _restyle(self) -> None:
        self.verticalScrollBar().setSingleStep(theme.px(40))
        for view in list(self._views.values()):  # one may grow, and others be built for that
            view.restyle()
            view.set_column(0, 0)
        self._place()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    # ------------------------------------------------------------ the mouse

    def viewportEvent(self, event: QEvent) -> bool:
        """When the mouse leaves, the row of actions goes back to the last message."""
        if event.type() == QEvent.Type.Leave:
            self.attention.leave()
        return super().viewportEvent(event)

    def _show_newest(self) -> None:
        bar = self.verticalScrollBar()
        visible = not self.following and bar.value() < bar.maximum() - _NEAR_BOTTOM
        if visible:
            size = self.newest.sizeHint()
            x = (self.width() - size.width()) // 2
            self.newest.setGeometry(
                x, self.height() - size.height() - theme.px(8), size.width(), size.height()
            )
            self.newest.raise_()
        self.newest.setVisible(visible)

    # ------------------------------------------------------------ keyboard

    def _on_focused(self, message: Any) -> None:
        self.attention.turn_to(message)
        view = self.view_of(message.id)
        if view is None:
            return
        if view.y() < 0 or view.geometry().bottom() > self.viewport().height():
            room = self.viewport().height()
            value = self.verticalScrollBar().value()
            wanted = (
                value + view.y()
                if view.y() < 0 or view.height() > room
                else (value + view.geometry().bottom() - room)
            )
            self.following = False
            self._set_value(wanted)
            self._place()

    def eventFilter(self, watched: Any, event: QEvent) -> bool:
        if event.type() == QEvent.Type.KeyPress and isinstance(watched, MessageView):
            return isinstance(event, QKeyEvent) and self._key_on_message(watched, event)
        return False

    def _key_on_message(self, view: MessageView, event: QKeyEvent) -> bool:
        """Arrow keys walk the messages, Home and End go to the ends."""
        order = self._order.get(view.message.id, 0)
        last = len(self.messages) - 1
        steps = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
        key = Qt.Key(event.key())
        if event.modifiers() & Qt.KeyboardModifier.AltModifier:
            return False
        if key in steps:
            self._focus_order(min(last, max(0, order + steps[key])))
        elif key == Qt.Key.Key_Home:
            self._focus_order(0)
        elif key == Qt.Key.Key_End:
            self.go_to_newest()
            self._focus_order(last)
        elif key in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            page = self.viewport().height() - theme.px(40)
            sign = -1 if key == Qt.Key.Key_PageUp else 1
            self.verticalScrollBar().setValue(self.verticalScrollBar().value() + sign * page)
        else:
            return False
        return True

    def _focus_order(self, order: int) -> None:
        if order not in self._views:
            self.following = False
            self._set_value(self._heights.start(order))
            self._place()
        if order in self._views:
            self._views[order].setFocus(Qt.FocusReason.TabFocusReason)


def _estimate(message: Any, characters_per_line: int) -> int:
    """Guess the height of a message that is not built, in pixels."""
    text = message.text
    lines = text.count("\n") + len(text) // characters_per_line + 1
    return theme.px(60) + lines * theme.px(22)
