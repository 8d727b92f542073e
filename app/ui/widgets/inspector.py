"""The right side: tabs with what can be seen and changed about the answers of a pane."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QFrame,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.strings import tr
from app.ui.theme import theme
from app.ui.widgets.controls import IconButton, button


class Inspector(QFrame):
    """Tabs over scrolling pages.

    Signals:
        shown(str): the key of the tab that came to the front.
    """

    shown = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("inspector")
        self.setAccessibleName(tr("Inspector"))
        self.tabs: dict[str, QPushButton] = {}
        self.pages = QStackedWidget(self)
        self._areas: dict[str, QScrollArea] = {}
        self._group = QButtonGroup(self)
        self._group.setExclusive(True)
        self.head = QFrame(self)
        self.head.setObjectName("paneHeader")
        self._row = QHBoxLayout(self.head)
        self._row.addStretch(1)
        self.close_button = IconButton("close", tr("Close the inspector"), self.head)
        self.close_button.hide()
        self._row.addWidget(self.close_button)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self.head)
        box.addWidget(self.pages, 1)
        theme.changed.connect(self._restyle)
        self._restyle()

    def _restyle(self) -> None:
        self.head.setFixedHeight(theme.px(48))
        self._row.setContentsMargins(theme.px(16), 0, theme.px(16), 0)
        self._row.setSpacing(theme.px(20))
        for tab in self.tabs.values():
            tab.setFixedHeight(theme.px(48))

    def set_overlaid(self, overlaid: bool) -> None:
        """Lie over the pane with a border and a way to close, or stand beside it."""
        if self.close_button.isHidden() == overlaid:
            self.setProperty("overlaid", overlaid)
            self.style().unpolish(self)
            self.style().polish(self)
            self.close_button.setVisible(overlaid)

    def set_page(self, key: str, title: str, page: QWidget) -> None:
        """Add a tab, or put another page into the one of that key."""
        area = self._areas.get(key)
        if area is None:
            area = QScrollArea(self)
            area.setWidgetResizable(True)
            area.setAccessibleName(title)
            area.setFrameShape(QFrame.Shape.NoFrame)
            area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
            self._areas[key] = area
            self.pages.addWidget(area)
            tab = button(title, "tab", title, self.head)
            tab.setCheckable(True)
            tab.clicked.connect(lambda: self.show_tab(key))
            self.tabs[key] = tab
            self._group.addButton(tab)
            self._row.insertWidget(len(self.tabs) - 1, tab)
            self._restyle()
            tab.setChecked(len(self.tabs) == 1)
        area.setWidget(page)

    def show_tab(self, key: str) -> None:
        """Bring a tab to the front."""
        self.tabs[key].setChecked(True)
        self.pages.setCurrentWidget(self._areas[key])
        self.shown.emit(key)
