"""Which message has the attention: the row of actions stands under it, its menu opens there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QPoint, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QMenu

from app.strings import tr
from app.ui.actions import ACTIONS
from app.ui.bound import bound
from app.ui.theme import theme
from app.ui.widgets.action_row import ActionRow

if TYPE_CHECKING:
    from app.ui.widgets.transcript import Transcript


class Attention(QObject):
    """Follows the mouse and the keyboard; without either it stays with the last message.

    Signals:
        triggered(str, message): an action of the row or the menu.
        sibling(message, int): go to the version that many steps away.
    """

    triggered = Signal(str, object)
    sibling = Signal(object, int)

    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript)
        self.describe: Callable[[Any], tuple[tuple[int, int], str]] = lambda _: ((1, 1), "")
        self._transcript = transcript
        self._chosen: Any = None
        self.row = ActionRow(transcript.viewport())
        self.row.triggered.connect(self._on_triggered)
        self.row.sibling.connect(self._on_sibling)
        self.row.hide()

    def message(self) -> Any:
        """Return the message with the attention as it is now, or None on an empty page."""
        messages = self._transcript.messages
        chosen = self._chosen or (messages[-1] if messages else None)
        return self._transcript.message(chosen.id) if chosen is not None else None

    def turn_to(self, message: Any) -> None:
        """Put the row under a message; None is the last one."""
        self._chosen = message
        self.show()

    def forget(self) -> None:
        """Go back to the last message; the row moves with the next layout."""
        self._chosen = None

    def leave(self) -> None:
        """Go back to the last message, unless the keyboard or a menu holds this one."""
        if self._chosen is None or QApplication.activePopupWidget() is not None:
            return
        view = self._transcript.view_of(self._chosen.id)
        holder = QApplication.focusWidget()
        has_keyboard = view is not None and view.hasFocus()
        if not has_keyboard and not (holder is not None and self.row.isAncestorOf(holder)):
            self.turn_to(None)

    def set_figures(self, message_id: Any, figures: str) -> None:
        """Show live figures, if the row stands under that message."""
        message = self.message()
        if message is not None and message.id == message_id:
            self.row.set_figures(figures)

    def show(self) -> None:
        """Put the row where it belongs, if that message is built."""
        message = self.message()
        view = self._transcript.view_of(message.id) if message is not None else None
        if view is None:
            self.row.hide()
            return
        left, width = self._transcript.column()
        edge = theme.px(6)  # what a button's text stands in from its edge
        top = view.y() + view.actions_top()
        self.row.setGeometry(left - edge, top, width + 2 * edge, theme.px(24))
        self.row.present(message, *self.describe(message))
        self.row.raise_()
        self.row.show()

    def open_menu(self, message: Any, point: QPoint) -> None:
        """Offer the actions of a message, and the selected text, at a global point."""
        self.turn_to(message)
        present = self.message()
        menu = QMenu(self._transcript)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        selected = self._transcript.pointer.selected_text()
        if selected:
            menu.addAction(tr("Copy selection"), bound(copy_text, selected))
            menu.addSeparator()
        for key in self.row.keys():
            menu.addAction(tr(ACTIONS[key].label), bound(self.triggered.emit, key, present))
        menu.popup(point)

    def _on_triggered(self, key: str) -> None:
        message = self.message()
        if message is not None:
            self.triggered.emit(key, message)

    def _on_sibling(self, step: int) -> None:
        message = self.message()
        if message is not None:
            self.sibling.emit(message, step)


def copy_text(text: str) -> None:
    """Put a text on the clipboard."""
    QGuiApplication.clipboard().setText(text)
