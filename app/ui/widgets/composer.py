"""The box you type in: grows with the text, sends with Enter, counts tokens, stops answers."""

from functools import cache

from PySide6.QtCore import QEvent, QMimeData, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QInputMethodEvent,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.strings import tr
from app.ui.actions import ACTIONS
from app.ui.theme import theme
from app.ui.widgets.block import wrap_mode
from app.ui.widgets.controls import button, label

_MAX_LINES = 12
_OWN_KEYS = {"message.copy_selection", "message.send", "page.newest"}  # mean the text in a field


class MessageEdit(QPlainTextEdit):
    """The text field of the composer.

    Signals:
        sent(): Enter was pressed, and no input method was composing.
        recalled(): the up arrow was pressed in an empty field.
        focus_changed(): the field got or lost the focus.
        resized(): the text needs another height.
    """

    sent = Signal()
    recalled = Signal()
    focus_changed = Signal()
    resized = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.sends_with_enter = True
        self._is_composing = False
        self.setPlaceholderText(tr("Write a message…"))
        self.setAccessibleName(tr("Message"))
        self.setAccessibleDescription(tr("Enter sends, Shift and Enter starts a new line."))
        self.setTabChangesFocus(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.document().setDocumentMargin(0)
        self.textChanged.connect(self._fit)
        theme.changed.connect(self._fit)
        self._fit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        is_return = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        alt = bool(event.modifiers() & Qt.KeyboardModifier.AltModifier)
        if is_return and not self._is_composing and not alt:
            if control or shift != self.sends_with_enter:
                self.sent.emit()
            else:
                self.textCursor().insertBlock()
                self.ensureCursorVisible()
            return
        if event.key() == Qt.Key.Key_Up and not self.toPlainText():
            self.recalled.emit()
            return
        super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        """Let the window's keys win over those of the text field (Ctrl+K deletes a line there)."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            if QKeySequence(event.keyCombination()) in _window_keys():
                event.ignore()
                return True
        return super().event(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        """Leave dropped files and chats to the window: they are no text."""
        return not source.hasUrls() and super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Paste; a word of many thousand letters is wrapped anywhere, so that nothing freezes."""
        self.setWordWrapMode(wrap_mode(source.text()))
        super().insertFromMimeData(source)

    def setPlainText(self, text: str) -> None:
        """Replace the text; wraps as a paste does."""
        self.setWordWrapMode(wrap_mode(text))
        super().setPlainText(text)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._is_composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focus_changed.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focus_changed.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        line = self.fontMetrics().lineSpacing()
        lines = max(1, min(_MAX_LINES, round(self.document().size().height())))
        height = lines * line + theme.px(6)
        if height != self.height():
            self.setFixedHeight(height)
            self.resized.emit()


class Composer(QWidget):
    """Text field, figures and the one button that sends or stops.

    Signals:
        sent(str): a message to send.
        stopped(): the running answer should stop.
        draft_changed(str): the unsent text changed (a moment after the last key).
        system_wanted(): the system prompt should be shown.
        recalled(): the last question should be edited.
    """

    sent = Signal(str)
    stopped = Signal()
    draft_changed = Signal(str)
    system_wanted = Signal()
    recalled = Signal()
    text_changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.is_running = False
        self.blocked = ""
        self.edit = MessageEdit(self)
        self.figures = label("", "secondary", self)
        self.system = button(tr("System prompt"), "quiet", tr("What the model is told first"), self)
        self.send = button(tr("Send"), "primary", ACTIONS["message.send"].tip(), self)
        self.stop = button(tr("Stop  Esc"), "", tr("Stop the answer and keep what came"), self)
        self.stop.hide()
        self._draft = QTimer(self)
        self._draft.setSingleShot(True)
        self._draft.setInterval(400)
        self._draft.timeout.connect(self.flush_draft)
        self._connect()
        self._arrange()

    def _connect(self) -> None:
        self.edit.sent.connect(self._send)
        self.edit.recalled.connect(self.recalled)
        self.edit.focus_changed.connect(self.update)
        self.edit.textChanged.connect(self._on_text_changed)
        self.send.clicked.connect(self._send)
        self.stop.clicked.connect(self.stopped)
        self.system.clicked.connect(self.system_wanted)
        theme.changed.connect(self._restyle)

    def _arrange(self) -> None:
        self._outer = QVBoxLayout(self)
        self._row = QHBoxLayout()
        self._row.addWidget(self.system)
        self._row.addWidget(self.figures, 1)
        self.figures.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._row.addWidget(self.send)
        self._row.addWidget(self.stop)
        self._outer.addWidget(self.edit)
        self._outer.addLayout(self._row)
        self._restyle()
        self._refresh()

    def _restyle(self) -> None:
        pad = theme.px(14)
        self._outer.setContentsMargins(pad, theme.px(13), theme.px(12), theme.px(14))
        self._outer.setSpacing(theme.px(8))
        self._row.setSpacing(theme.px(8))
        self.update()

    # ------------------------------------------------------------ content

    def text(self) -> str:
        """Return what stands in the box."""
        return self.edit.toPlainText()

    def set_text(self, text: str) -> None:
        """Put a text into the box, the cursor behind it."""
        self.edit.setPlainText(text)
        cursor = self.edit.textCursor()
        cursor.movePosition(cursor.MoveOperation.End)
        self.edit.setTextCursor(cursor)
        self._draft.stop()

    def set_running(self, is_running: bool) -> None:
        """Offer Stop while an answer runs, else Send."""
        self.is_running = is_running
        self.send.setVisible(not is_running)
        self.stop.setVisible(is_running)
        self._refresh()

    def show_key(self, stops_with_key: bool) -> None:
        """Say on the button whether Esc stops this answer: it does in the current pane."""
        self.stop.setText(tr("Stop  Esc") if stops_with_key else tr("Stop"))

    def block(self, reason: str) -> None:
        """Say why nothing can be sent now; an empty reason allows it."""
        self.blocked = reason
        self._refresh()

    def set_figures(self, sentence: str) -> None:
        """Show tokens of the text and what is left of the context."""
        self.figures.setText(sentence)

    def flush_draft(self) -> None:
        """Report the unsent text now."""
        self._draft.stop()
        self.draft_changed.emit(self.text())

    def _on_text_changed(self) -> None:
        self._draft.start()
        self._refresh()
        self.text_changed.emit()

    def _refresh(self) -> None:
        self.send.setEnabled(bool(self.text().strip()) and not self.blocked)
        self.send.setToolTip(self.blocked or ACTIONS["message.send"].tip())

    def _send(self) -> None:
        text = self.text().strip()
        if text and not self.is_running and not self.blocked:
            self.set_text("")
            self.sent.emit(text)

    # ------------------------------------------------------------ paint

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        radius = theme.px(14)
        box = QRectF(self.rect()).adjusted(1.5, 0.5, -1.5, -3.5)
        for i in range(3):
            shade = QColor(0, 0, 0, 5 if not theme.is_dark() else 18)
            path = QPainterPath()
            path.addRoundedRect(box.adjusted(-0.5 * i, i, 0.5 * i, i + 1), radius, radius)
            painter.fillPath(path, shade)
        path = QPainterPath()
        path.addRoundedRect(box, radius, radius)
        painter.fillPath(path, theme.color("card"))
        painter.setPen(QPen(theme.color("faint" if self.edit.hasFocus() else "line"), 1))
        painter.drawPath(path)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """In a narrow pane the word “prompt” gives way to the figures."""
        super().resizeEvent(event)
        is_narrow = self.width() < theme.px(320)
        self.system.setText(tr("System") if is_narrow else tr("System prompt"))

    def minimumSizeHint(self) -> QSize:
        return QSize(theme.px(200), super().minimumSizeHint().height())


@cache
def _window_keys() -> frozenset[QKeySequence]:
    actions = (action for key, action in ACTIONS.items() if key not in _OWN_KEYS)
    return frozenset(QKeySequence(keys) for action in actions for keys in action.keys)
