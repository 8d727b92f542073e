"""What stands around the transcript of a pane: the empty page, the system prompt, the banner."""

from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QProgressBar,
    QVBoxLayout,
    QWidget,
)

from app.strings import tr
from app.ui.theme import theme
from app.ui.widgets.controls import button, label

_MIDDLE, _SPREAD = Qt.AlignmentFlag.AlignHCenter, Qt.AlignmentFlag(0)


class EmptyPage(QWidget):
    """What stands in the middle of a chat without messages."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("page")
        self.title = label("", "heading", self)
        self.words = label("", "secondary", self)
        self.progress = QProgressBar(self)
        self.progress.setTextVisible(False)
        self.progress.setRange(0, 1000)
        self.progress.setAccessibleName(tr("Progress of opening the model"))
        self.progress.setFixedWidth(theme.px(260))
        self.stage = label("", "secondary", self)
        for text in (self.title, self.words, self.stage):
            text.setWordWrap(True)
            text.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        box = QVBoxLayout(self)
        box.setContentsMargins(theme.px(20), 0, theme.px(20), 0)
        box.setSpacing(theme.px(8))
        box.addStretch(3)
        for widget in (self.title, self.words, self.progress, self.stage):
            box.addWidget(widget, 0, _MIDDLE if widget is self.progress else _SPREAD)
        box.addStretch(4)

    def show_engine(self, engine: Any) -> None:
        """Say what can be done now."""
        for widget in (self.progress, self.stage):
            widget.setVisible(engine.state == "loading")
        if engine.state == "loading":
            self.title.setText(tr("The model is on its way"))
            self.words.setText(tr("You can write already; the answer comes when it is loaded."))
        elif engine.state == "failed":
            self.title.setText(tr("The model could not be loaded"))
            self.words.setText(tr("The reason stands below."))
        else:
            self.title.setText(tr("What is on your mind?"))
            self.words.setText(tr("{name} answers here, on this machine.", name=engine.name))

    def show_progress(self, stage: str, done: float) -> None:
        """Show how far a load is, in words and 0 to 1."""
        self.stage.setText(stage)
        self.progress.setValue(round(1000 * done))


class SystemPrompt(QFrame):
    """The field above the composer with what the model is told first."""

    changed = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self.edit = QPlainTextEdit(self)
        self.edit.setAccessibleName(tr("System prompt"))
        self.edit.setPlaceholderText(tr("What the model is told before the conversation…"))
        self.edit.setFixedHeight(theme.px(84))
        self.edit.setTabChangesFocus(True)
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(300)
        self._later.timeout.connect(lambda: self.changed.emit(self.edit.toPlainText()))
        self.edit.textChanged.connect(self._later.start)
        box = QVBoxLayout(self)
        box.setContentsMargins(theme.px(12), theme.px(10), theme.px(12), theme.px(8))
        box.addWidget(label(tr("SYSTEM PROMPT"), "section"))
        box.addWidget(self.edit)
        self.hide()

    def set_text(self, text: str) -> None:
        """Show a text; nothing is emitted."""
        self.edit.blockSignals(True)
        self.edit.setPlainText(text)
        self.edit.blockSignals(False)
        self._later.stop()

    def toggle(self) -> None:
        """Open or fold the field."""
        self.setVisible(self.isHidden())
        if self.isVisible():
            self.edit.setFocus()


class Banner(QFrame):
    """A line above the composer that says what sending will do, with a way out."""

    cancelled = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.words = label("", "secondary", self)
        self.cancel = button(tr("Cancel"), "quiet", tr("Leave the message as it is"), self)
        self.cancel.clicked.connect(self.cancelled)
        row = QHBoxLayout(self)
        row.setContentsMargins(theme.px(4), 0, theme.px(4), 0)
        row.addWidget(self.words, 1)
        row.addWidget(self.cancel)
        self.hide()

    def say(self, words: str) -> None:
        """Show the line."""
        self.words.setText(words)
        self.show()
