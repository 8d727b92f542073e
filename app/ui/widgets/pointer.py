"""What the mouse does on the page: select across messages, open links, scroll wide code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QTextCursor

from app.ui.widgets.framed import FramedView

if TYPE_CHECKING:
    from PySide6.QtGui import QMouseEvent, QWheelEvent

    from app.ui.widgets.message import MessageView


@dataclass(frozen=True, order=True)
class Spot:
    """A place in the text of a conversation: message id, its order, block, character."""

    order: int
    block: int
    position: int


class Pointer(QObject):
    """The selection of one transcript and the mouse that makes it.

    Signals:
        link_activated(str): a link was clicked.
        changed(): the selection is another one.
    """

    link_activated = Signal(str)
    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.anchor: Spot | None = None
        self.end: Spot | None = None
        self.views: dict[int, MessageView] = {}
        self._pressed_link = ""
        self._dragged: FramedView | None = None

    # ------------------------------------------------------------ selection

    def clear(self) -> None:
        """Select nothing."""
        self.anchor = self.end = None
        self.show()

    def select_message(self, order: int) -> None:
        """Select one whole message."""
        view = self.views.get(order)
        if view and view.views:
            self.anchor = Spot(order, 0, 0)
            self.end = Spot(order, len(view.views) - 1, view.views[-1].last_position())
            self.show()

    def select_text(self, order: int, text: str, nth: int = 0) -> int:
        """Select the nth place of a text in one built message, letters large or small.

        Where the whole text is nowhere, its words are looked for. Returns how far below the top
        of the message it stands, in pixels; -1 if it is not there.
        """
        for wanted in (text.casefold(), *text.casefold().split()):
            places = self._places(order, wanted) if wanted else []
            if places:
                self.anchor, self.end, top = places[min(nth, len(places) - 1)]
                self.show()
                return top
        return -1

    def _places(self, order: int, wanted: str) -> list[tuple[Spot, Spot, int]]:
        """Return where a folded text stands in a message: its ends, and how far down."""
        places: list[tuple[Spot, Spot, int]] = []
        for i, block in enumerate(self.views[order].views if order in self.views else ()):
            plain = block.document.toPlainText()
            # Casefolding may lengthen a text; then places would not fit, so it only lowers there.
            folded = plain.casefold() if len(plain.casefold()) == len(plain) else plain.lower()
            at = folded.find(wanted)
            while at >= 0:
                start, end = Spot(order, i, at), Spot(order, i, at + len(wanted))
                places.append((start, end, block.y + block.top_of(at)))
                at = folded.find(wanted, at + len(wanted))
        return places

    def show(self) -> None:
        """Write the selection onto the built blocks and repaint what changed."""
        for order, view in self.views.items():
            changed = False
            for i, block in enumerate(view.views):
                wanted = self._range(order, i, block.last_position())
                changed = changed or wanted != block.selected
                block.selected = wanted
            if changed:
                view.update()
        self.changed.emit()

    def _range(self, order: int, block: int, last: int) -> tuple[int, int] | None:
        if self.anchor is None or self.end is None or self.anchor == self.end:
            return None
        first, final = sorted((self.anchor, self.end))
        if not (first.order, first.block) <= (order, block) <= (final.order, final.block):
            return None
        start = first.position if (first.order, first.block) == (order, block) else 0
        end = final.position if (final.order, final.block) == (order, block) else last
        return (start, end) if start < end else None

    def selected_text(self) -> str:
        """Return the selected text of all built messages, blocks separated by lines."""
        parts: list[str] = []
        for order in sorted(self.views):
            blocks = self.views[order].views
            parts += [block.selected_text() for block in blocks if block.selected]
        return "\n".join(parts)

    # ------------------------------------------------------------ mouse

    def press(self, view: MessageView, event: QMouseEvent) -> None:
        """Start a selection, a drag of a scroll handle, or a click on a link."""
        if event.button() != Qt.MouseButton.LeftButton:
            event.ignore()
            return
        index, x, y = view.view_at(event.position().toPoint())
        if index < 0:
            return
        block = view.views[index]
        if isinstance(block, FramedView):
            grip = block.scrollbar_rect().adjusted(0, -4, 0, 4)
            if not grip.isEmpty() and grip.top() <= y <= grip.bottom():
                self._dragged = block
                return
        self._pressed_link = block.link_at(x, y)
        spot = Spot(self._order(view), index, block.hit(x, y))
        extend = event.modifiers() & Qt.KeyboardModifier.ShiftModifier and self.anchor
        self.anchor = self.anchor if extend else spot
        self.end = spot
        self.show()

    def move(self, view: MessageView, event: QMouseEvent) -> None:
        """Extend the selection, or show what a click would do."""
        point = event.position().toPoint()
        if not event.buttons() & Qt.MouseButton.LeftButton:
            self._hover(view, event)
            return
        if self._dragged is not None:
            self._dragged.drag_to(view.view_at(point)[1])
            view.update()
            return
        target = view
        place = view.mapToGlobal(point)
        for other in self.views.values():
            if other.rect().contains(other.mapFromGlobal(place)):
                target = other
        index, x, y = target.view_at(target.mapFromGlobal(place))
        if index >= 0 and self.anchor is not None:
            self.end = Spot(self._order(target), index, target.views[index].hit(x, y))
            self.show()

    def release(self, view: MessageView, event: QMouseEvent) -> None:
        """Open the link when press and release were on it."""
        self._dragged = None
        index, x, y = view.view_at(event.position().toPoint())
        link = view.views[index].link_at(x, y) if index >= 0 else ""
        if link and link == self._pressed_link and self.anchor == self.end:
            self.link_activated.emit(link)
        self._pressed_link = ""

    def double_click(self, view: MessageView, event: QMouseEvent) -> None:
        """Select the word under the mouse."""
        index, x, y = view.view_at(event.position().toPoint())
        if index < 0:
            return
        block = view.views[index]
        cursor = QTextCursor(block.document)
        cursor.setPosition(block.hit(x, y))
        cursor.select(QTextCursor.SelectionType.WordUnderCursor)
        order = self._order(view)
        self.anchor = Spot(order, index, cursor.selectionStart())
        self.end = Spot(order, index, cursor.selectionEnd())
        self.show()

    def wheel(self, view: MessageView, event: QWheelEvent) -> None:
        """Scroll a wide block sideways; everything else moves the page."""
        sideways = event.angleDelta().x()
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            sideways = sideways or event.angleDelta().y()
        index, _, _ = view.view_at(event.position().toPoint())
        block = view.views[index] if index >= 0 else None
        if sideways and isinstance(block, FramedView) and block.scroll_by(-sideways // 2):
            view.update()
            event.accept()
            return
        event.ignore()

    def _hover(self, view: MessageView, event: QMouseEvent) -> None:
        index, x, y = view.view_at(event.position().toPoint())
        block = view.views[index] if index >= 0 else None
        if block is None or not 0 <= y <= block.height or x < 0:
            view.unsetCursor()
        elif block.link_at(x, y):
            view.setCursor(Qt.CursorShape.PointingHandCursor)
        else:
            view.setCursor(Qt.CursorShape.IBeamCursor)

    def _order(self, view: MessageView) -> int:
        return next((order for order, known in self.views.items() if known is view), 0)
