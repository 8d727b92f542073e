"""What this program is: version, licences, this machine."""

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from PySide6 import __version__ as qt_version
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.strings import tr
from app.ui.icons import program_icon
from app.ui.theme import theme
from app.ui.widgets.controls import button, label


class AboutDialog(QDialog):
    """Name, version, licences, and a line about the machine for reports."""

    def __init__(self, device: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("About Inglenook"))
        picture = QLabel(self)
        picture.setPixmap(program_icon().pixmap(theme.px(72), theme.px(72)))
        words = QVBoxLayout()
        words.setSpacing(theme.px(4))
        words.addWidget(label("Inglenook", "heading"))
        words.addWidget(label(tr("Version {version}", version=_version()), "secondary"))
        lines = (
            tr("A quiet place to talk with a model that runs on your own machine."),
            tr("Apache License 2.0. Qt under LGPL 3, Inter under SIL OFL 1.1."),
            f"Python {sys.version.split()[0]} · Qt {qt_version} · {platform.system()} · {device}",
        )
        shown = label("\n\n".join(lines), "secondary")
        shown.setWordWrap(True)
        shown.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        shown.setMinimumHeight(theme.px(120))
        shown.setAlignment(Qt.AlignmentFlag.AlignTop)
        words.addWidget(shown)
        close = button(tr("Close"), "primary")
        close.clicked.connect(self.accept)
        words.addSpacing(theme.px(8))
        words.addWidget(close, 0, Qt.AlignmentFlag.AlignRight)
        box = QHBoxLayout(self)
        box.setContentsMargins(theme.px(24), theme.px(22), theme.px(24), theme.px(18))
        box.setSpacing(theme.px(20))
        box.addWidget(picture, 0, Qt.AlignmentFlag.AlignTop)
        box.addLayout(words, 1)
        self.setFixedWidth(theme.px(480))


def _version() -> str:
    try:
        return version("inglenook")
    except PackageNotFoundError:
        return tr("from source")
