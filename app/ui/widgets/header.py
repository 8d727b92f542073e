"""The head of a pane: title, the model as a chip, and how full the context is."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QStackedWidget, QWidget

from app.strings import tr
from app.ui.actions import ACTIONS
from app.ui.theme import theme
from app.ui.widgets.controls import ContextRing, ElidedButton, ElidedLabel, action_button


class PaneHeader(QFrame):
    """Title, model chip, ring, and the switches of the sidebar and the inspector.

    Signals:
        renamed(str): the person wrote another title.
        model_wanted(): the chip was pressed.
    """

    renamed = Signal(str)
    model_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("paneHeader")
        self.title = ElidedLabel("", "title", self)
        self.title.double_clicked.connect(self.rename)
        self.field = QLineEdit(self)
        self.field.setAccessibleName(tr("Title of this chat"))
        self.field.editingFinished.connect(self._finish_rename)
        self.names = QStackedWidget(self)
        self.names.addWidget(self.title)
        self.names.addWidget(self.field)
        self.chip = ElidedButton("chip", ACTIONS["model.choose"].tip(), self)
        self.chip.set_text(tr("No model"))
        self.chip.clicked.connect(self.model_wanted)
        self.ring = ContextRing(self)
        self.sidebar = action_button("window.sidebar", "sidebar", self)
        self.inspector = action_button("window.inspector", "inspector", self)
        self.close_button = action_button("pane.close", "close", self)
        self._is_marked = False
        self._row = QHBoxLayout(self)
        self._row.addWidget(self.sidebar)
        self._row.addWidget(self.names)
        self._row.addWidget(self.chip)
        self._row.addStretch(1)
        self._row.addWidget(self.ring)
        self._row.addWidget(self.close_button)
        self._row.addWidget(self.inspector)
        theme.changed.connect(self._restyle)
        self._restyle()

    def _restyle(self) -> None:
        self.setFixedHeight(theme.px(48))
        self._row.setContentsMargins(theme.px(12), 0, theme.px(12), 0)
        self._row.setSpacing(theme.px(8))
        self.names.setFixedHeight(theme.px(34))
        self._fit_title()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.chip.updateGeometry()

    def show_place(
        self, is_first: bool, is_last: bool, is_one_of_many: bool, is_current: bool
    ) -> None:
        """Carry the window's buttons at the edges, and show which of several panes is current."""
        self.sidebar.setVisible(is_first)
        self.inspector.setVisible(is_last)
        self.close_button.setVisible(is_one_of_many)
        self._is_marked = is_one_of_many and is_current
        self.title.setEnabled(is_current or not is_one_of_many)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._is_marked:
            thick = theme.px(2)
            area = self.rect().adjusted(0, self.height() - thick, 0, 0)
            QPainter(self).fillRect(area, theme.color("accent"))

    def set_title(self, title: str) -> None:
        """Show the title of the conversation."""
        self.title.set_text(title or tr("New chat"))
        self._fit_title()

    def set_model(self, name: str) -> None:
        """Show which model answers."""
        self.chip.set_text(name)

    def rename(self) -> None:
        """Let the person write another title in place."""
        self.field.setText(self.title.full_text())
        self.field.end(False)
        self.field.home(True)  # all is selected, the beginning in view
        self.names.setCurrentWidget(self.field)
        self.names.setMinimumWidth(theme.px(220))
        self.field.setFocus()

    def is_renaming(self) -> bool:
        """Tell whether the title is being edited."""
        return self.names.currentWidget() is self.field

    def end_renaming(self) -> None:
        """Leave the title as it was."""
        self.names.setCurrentWidget(self.title)
        self._fit_title()

    def _finish_rename(self) -> None:
        if self.names.currentWidget() is self.field:
            self.names.setCurrentWidget(self.title)
            self.names.setMinimumWidth(0)
            title = self.field.text().strip()
            if title and title != self.title.full_text():
                self.renamed.emit(title)

    def _fit_title(self) -> None:
        self.names.setMaximumWidth(max(theme.px(60), self.title.sizeHint().width()))
        if self.names.currentWidget() is self.field:
            self.names.setMaximumWidth(theme.px(400))
