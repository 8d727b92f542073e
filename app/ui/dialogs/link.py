"""Asks before a link leaves the program: shows the address first."""

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QDialog, QHBoxLayout, QVBoxLayout, QWidget

from app.strings import tr
from app.ui.theme import theme
from app.ui.widgets.controls import button, label


class LinkDialog(QDialog):
    """Shows an address and opens it in the system's browser only when told to."""

    def __init__(self, address: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Open this link?"))
        self.address = address
        shown = label(address, "code")
        shown.setWordWrap(True)
        shown.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.open_button = button(tr("Open in the browser"), "primary")
        self.open_button.clicked.connect(self._open)
        copy = button(tr("Copy address"))
        copy.clicked.connect(self._copy)
        cancel = button(tr("Cancel"))
        cancel.clicked.connect(self.reject)
        box = QVBoxLayout(self)
        box.setContentsMargins(theme.px(20), theme.px(18), theme.px(20), theme.px(16))
        box.setSpacing(theme.px(12))
        box.addWidget(label(tr("This link leaves Inglenook:"), "subheading"))
        box.addWidget(shown)
        row = QHBoxLayout()
        row.addWidget(copy)
        row.addStretch(1)
        row.addWidget(cancel)
        row.addWidget(self.open_button)
        box.addLayout(row)
        self.setMinimumWidth(theme.px(440))

    def _open(self) -> None:
        QDesktopServices.openUrl(QUrl(self.address))
        self.accept()

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.address)
        self.accept()
