"""What went wrong, in the pane it belongs to: cause, remedy, and details behind a fold."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.strings import tr
from app.ui.theme import theme
from app.ui.widgets.flow import FlowLayout


class ErrorCard(QFrame):
    """One error with its remedies.

    Signals:
        remedy(str): the name of the remedy whose button was pressed.
        resized(): the fold was opened or closed.
    """

    remedy = Signal(str)
    resized = Signal()

    def __init__(
        self,
        sentence: str,
        details: str = "",
        remedies: tuple[tuple[str, str], ...] = (),
        parent: QWidget | None = None,
        title: str = "",
    ) -> None:
        super().__init__(parent)
        self.setObjectName("errorCard")
        self.setAccessibleName(tr("Error: {sentence}", sentence=f"{title} {sentence}".strip()))
        self.sentence = QLabel(sentence, self)
        self.sentence.setWordWrap(True)
        self.sentence.setTextFormat(Qt.TextFormat.PlainText)
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.details = QPlainTextEdit(self)
        self.details.setObjectName("field")
        self.details.setFont(theme.font(11.5, code=True))
        self.details.setReadOnly(True)
        self.details.setPlainText(details)
        self.details.setAccessibleName(tr("Details of the error"))
        self.details.setFixedHeight(theme.px(110))
        self.details.hide()
        outer = self._outer = QVBoxLayout(self)
        outer.setContentsMargins(theme.px(14), theme.px(12), theme.px(14), theme.px(12))
        outer.setSpacing(theme.px(8))
        if title:
            head = QLabel(title, self)
            head.setObjectName("errorTitle")
            head.setTextFormat(Qt.TextFormat.PlainText)
            head.setWordWrap(True)
            outer.addWidget(head)
        outer.addWidget(self.sentence)
        outer.addWidget(self.details)
        outer.addLayout(self._buttons(details, remedies))

    def _buttons(self, details: str, remedies: tuple[tuple[str, str], ...]) -> FlowLayout:
        row = FlowLayout(gap=theme.px(8))
        for name, label in remedies:
            button = QPushButton(label, self)
            button.setAccessibleName(label)
            button.clicked.connect(lambda _=False, name=name: self.remedy.emit(name))
            row.addWidget(button)
        if details:
            self.fold = self._quiet(tr("Details"))
            self.fold.setCheckable(True)
            self.fold.toggled.connect(self._show_details)
            row.addWidget(self.fold)
        copy = self._quiet(tr("Copy"))
        copy.clicked.connect(self.copy)
        row.addWidget(copy)
        return row

    def _quiet(self, label: str) -> QPushButton:
        button = QPushButton(label, self)
        button.setObjectName("quiet")
        button.setAccessibleName(label)
        return button

    def _show_details(self, visible: bool) -> None:
        self.details.setVisible(visible)
        self.resized.emit()

    def height_for(self, width: int) -> int:
        """Return the height that the card needs at a width, in pixels."""
        return self._outer.totalHeightForWidth(width)

    def copy(self) -> None:
        """Put sentence and details on the clipboard."""
        text = f"{self.sentence.text()}\n\n{self.details.toPlainText()}".strip()
        QGuiApplication.clipboard().setText(text)
