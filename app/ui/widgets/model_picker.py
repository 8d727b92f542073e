"""The chooser under the model chip: type to filter, Enter to load, or open a file."""

from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from app.services.model_words import title_of
from app.strings import tr
from app.ui.actions import ACTIONS
from app.ui.theme import theme
from app.ui.widgets.controls import button, label
from app.ui.widgets.model_list import MODEL, ModelList


class ModelPicker(QFrame):
    """A popup with all models that were found.

    Signals:
        chosen(object): the path of the model to load.
        file_wanted(), rescan_wanted(): open a file, look again.
    """

    chosen = Signal(object)
    file_wanted = Signal()
    rescan_wanted = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self.setObjectName("popup")
        self.setAccessibleName(tr("Choose a model"))
        self._models: list[Any] = []
        self.filter = QLineEdit(self)
        self.filter.setPlaceholderText(tr("Find a model"))
        self.filter.setAccessibleName(tr("Find a model"))
        self.filter.textChanged.connect(self._show)
        self.filter.installEventFilter(self)
        self.list = ModelList(self)
        self.list.clicked.connect(self._choose)
        self.list.activated.connect(self._choose)
        self.empty = label("", "secondary", self)
        self.empty.setWordWrap(True)
        self.open = button(tr("Open a file…"), "", ACTIONS["model.open"].tip(), self)
        self.open.clicked.connect(self._open_file)
        self.again = button(tr("Look again"), "quiet", tr("Look for models again"), self)
        self.again.clicked.connect(self.rescan_wanted)
        box = QVBoxLayout(self)
        box.setContentsMargins(theme.px(10), theme.px(10), theme.px(10), theme.px(10))
        box.setSpacing(theme.px(8))
        box.addWidget(self.filter)
        box.addWidget(self.list)
        box.addWidget(self.empty)
        row = QHBoxLayout()
        row.addWidget(self.open)
        row.addStretch(1)
        row.addWidget(self.again)
        box.addLayout(row)

    def set_models(self, models: list[Any], is_scanning: bool, loaded: Path | None = None) -> None:
        """Offer these models; the loaded one is marked."""
        self._models = models
        self.list.found.loaded = loaded
        self.empty.setText(
            tr("Looking for models…") if is_scanning else tr("No model was found on this machine.")
        )
        self._show()

    def open_at(self, point: QPoint) -> None:
        """Show the chooser with its top left corner at a global point."""
        self.filter.clear()
        self.setFixedWidth(theme.px(440))
        self._show()
        self.adjustSize()
        screen = self.screen().availableGeometry()
        x = min(point.x(), screen.right() - self.width() - theme.px(8))
        self.move(x, point.y())
        self.show()
        self.filter.setFocus()

    def _show(self) -> None:
        words = self.filter.text().casefold().split()
        models = [
            m for m in self._models if all(w in f"{title_of(m)} {m.path}".casefold() for w in words)
        ]
        self.list.set_models(models)
        self.list.setFixedHeight(self.list.height_for(max(1, min(8, len(models)))))
        self.list.setVisible(bool(models))
        self.empty.setVisible(not models)
        for row, model in enumerate(models):
            if not model.problem:
                self.list.setCurrentIndex(self.list.found.index(row))
                break
        if self.isVisible():
            self.adjustSize()

    def _choose(self, index: QModelIndex) -> None:
        model = index.data(MODEL)
        if model is not None and not model.problem:
            self.hide()
            self.chosen.emit(model.path)

    def _open_file(self) -> None:
        self.hide()
        self.file_wanted.emit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._choose(self.list.currentIndex())
                return True
            if event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Up):
                step = 1 if event.key() == Qt.Key.Key_Down else -1
                row = self.list.currentIndex().row() + step
                if 0 <= row < self.list.found.rowCount():
                    self.list.setCurrentIndex(self.list.found.index(row))
                return True
        return False
