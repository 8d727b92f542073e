"""Ctrl+F: find a text in the conversation on show, one place after the other."""

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QWidget

from app.strings import count, tr
from app.ui.actions import ACTIONS
from app.ui.theme import theme
from app.ui.widgets.controls import IconButton, button, label
from app.ui.widgets.transcript import Transcript


class FindBar(QFrame):
    """A small bar in the upper right corner of a pane.

    Signals:
        closed(): the person is done; the keyboard may go elsewhere.
    """

    closed = Signal()

    def __init__(self, transcript: Transcript, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("popup")
        self._transcript = transcript
        self._places: list[tuple[int, int]] = []  # (message id, which one inside it)
        self._at = -1
        self.field = QLineEdit(self)
        self.field.setPlaceholderText(tr("Find in this chat"))
        self.field.setAccessibleName(tr("Find in this chat"))
        self.field.installEventFilter(self)
        self.field.textChanged.connect(self._search)
        self.found = label("", "secondary", self)
        self.previous = button("‹", "quiet", ACTIONS["page.find_previous"].tip(), self)
        self.next = button("›", "quiet", ACTIONS["page.find_next"].tip(), self)
        self.close_button = IconButton("close", tr("Close the search (Esc)"), self)
        self.previous.clicked.connect(lambda: self.step(-1))
        self.next.clicked.connect(lambda: self.step(1))
        self.close_button.clicked.connect(self.leave)
        self._row = QHBoxLayout(self)
        self._row.addWidget(self.field, 1)
        for widget in (self.found, self.previous, self.next, self.close_button):
            self._row.addWidget(widget)
        self.hide()

    def open_bar(self) -> None:
        """Show the bar with the keyboard in its field."""
        self.show()
        self.place()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()
        self._search()

    def close_bar(self) -> None:
        """Hide the bar and its marks."""
        if not self.isHidden():
            self.hide()
            self._transcript.pointer.clear()

    def place(self) -> None:
        """Stand in the upper right corner of the transcript."""
        gap = theme.px(6)
        self._row.setContentsMargins(gap, gap, gap, gap)
        self._row.setSpacing(theme.px(4))
        area = self._transcript.geometry()
        pages = self._transcript.parentWidget()
        top = pages.y() if pages is not None else 0
        width = min(theme.px(340), area.width() - 2 * theme.px(12))
        height = self.sizeHint().height()
        self.setGeometry(area.width() - width - theme.px(14), top + theme.px(8), width, height)
        self.raise_()

    def step(self, step: int) -> None:
        """Go to the place that many further, around the end."""
        if self.isHidden():
            self.open_bar()
        if self._places:
            self._at = (self._at + step) % len(self._places)
            self._show()

    def _search(self) -> None:
        wanted = self.field.text().casefold()
        self._places = []
        for message in self._transcript.messages if wanted else ():
            n_times = self._transcript.text_of(message).casefold().count(wanted)
            self._places += [(message.id, nth) for nth in range(n_times)]
        self._at = len(self._places) - 1  # the newest first
        self._show()

    def _show(self) -> None:
        has_some = bool(self._places)
        self.previous.setEnabled(has_some)
        self.next.setEnabled(has_some)
        if has_some:
            of = count(len(self._places))
            self.found.setText(tr("{n} of {all}", n=count(self._at + 1), all=of))
            message_id, nth = self._places[self._at]
            self._transcript.go_to_message(message_id, takes_focus=False)
            self._transcript.mark_text(message_id, self.field.text(), nth)
        else:
            self.found.setText(tr("Nothing found") if self.field.text() else "")
            self._transcript.pointer.clear()

    def leave(self) -> None:
        """Close the bar and give the keyboard back."""
        self.close_bar()
        self.closed.emit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                back = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
                self.step(-1 if back else 1)
                return True
        return False
