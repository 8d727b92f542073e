"""The three regions of the window: sidebar, panes, inspector; each folds, sizes follow the zoom."""

import base64

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QApplication, QSplitter, QVBoxLayout, QWidget

from app.settings import Settings
from app.ui.theme import theme
from app.ui.widgets.inspector import Inspector
from app.ui.widgets.sidebar import Sidebar

_OVERLAY_BELOW = 800  # width in design pixels under which the inspector lies over the panes
_ALONE_BELOW = 540  # and under which the sidebar does so too
_SIDEBAR, _INSPECTOR = (180, 256), (280, 310)  # least and first width, in design pixels


class Columns(QWidget):
    """Holds the regions side by side; in a narrow window the outer ones lie over the panes."""

    def __init__(
        self,
        settings: Settings,
        sidebar: Sidebar,
        panes: QWidget,
        inspector: Inspector,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._settings = settings
        self._sidebar = sidebar
        self._panes = panes
        self._inspector = inspector
        self._zoom = theme.zoom
        self._is_placed = False
        self.splitter = QSplitter(Qt.Orientation.Horizontal, self)
        self.splitter.setChildrenCollapsible(False)
        self.splitter.setHandleWidth(1)
        for widget in (sidebar, panes, inspector):
            self.splitter.addWidget(widget)
        self.splitter.setStretchFactor(1, 1)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(self.splitter)
        inspector.close_button.clicked.connect(self.toggle_inspector)
        sidebar.chosen.connect(self._uncover)
        sidebar.started.connect(self._uncover)
        application = QApplication.instance()
        if isinstance(application, QApplication):
            application.focusChanged.connect(self._on_focus_changed)
        theme.changed.connect(self._restyle)
        self._set_least_widths()

    # ------------------------------------------------------------ folding

    def toggle_sidebar(self) -> None:
        """Show or hide the chats."""
        self._sidebar.setVisible(self._sidebar.isHidden())
        if not self.is_alone():
            self._settings["sidebar_open"] = not self._sidebar.isHidden()
        elif not self._sidebar.isHidden():
            self._sidebar.raise_()
            self._sidebar.search.setFocus()

    def toggle_inspector(self) -> None:
        """Show or hide the inspector."""
        self._inspector.setVisible(self._inspector.isHidden())
        if not self.is_overlaid():
            self._settings["inspector_open"] = not self._inspector.isHidden()
        self._fit_inspector()

    def is_overlaid(self) -> bool:
        """Tell whether the inspector lies over the panes."""
        return self._inspector.parentWidget() is self

    def is_alone(self) -> bool:
        """Tell whether the sidebar lies over the panes, and goes when a chat was chosen."""
        return self._sidebar.parentWidget() is self

    def _uncover(self) -> None:
        if self.is_alone():
            self._sidebar.hide()

    def _on_focus_changed(self, _old: QWidget | None, now: QWidget | None) -> None:
        if now is not None and self._panes.isAncestorOf(now):
            self._uncover()

    def _fit(self) -> None:
        self._fit_sidebar()
        self._fit_inspector()

    def _fit_sidebar(self) -> None:
        narrow = self.width() < theme.px(_ALONE_BELOW)
        if narrow and not self.is_alone():
            self._sidebar.setParent(self)
            self._sidebar.hide()
        elif not narrow and self.is_alone():
            self.splitter.insertWidget(0, self._sidebar)
            self._sidebar.setVisible(self._settings["sidebar_open"])
        if narrow:
            width = min(theme.px(_SIDEBAR[1]), self.width() - theme.px(48))
            self._sidebar.setGeometry(0, 0, width, self.height())

    def _fit_inspector(self) -> None:
        narrow = self.width() < theme.px(_OVERLAY_BELOW)
        if narrow and not self.is_overlaid():
            self._inspector.setParent(self)
            self._inspector.hide()
        elif not narrow and self.is_overlaid():
            self.splitter.addWidget(self._inspector)
            self._inspector.setVisible(self._settings["inspector_open"])
        self._inspector.set_overlaid(narrow)
        if narrow:
            width = min(theme.px(320), self.width())
            self._inspector.setGeometry(self.width() - width, 0, width, self.height())
            self._inspector.raise_()

    # ------------------------------------------------------------ sizes

    def restore(self) -> None:
        """Take over what the last run left; a damaged state changes nothing."""
        settings = self._settings
        if settings["splitters"]:
            self._is_placed = self.splitter.restoreState(unpacked(settings["splitters"]))
        self._sidebar.setVisible(settings["sidebar_open"])
        self._inspector.setVisible(settings["inspector_open"])

    def keep(self) -> None:
        """Remember the widths in the settings."""
        if not self.is_alone():
            self._settings["splitters"] = packed(self.splitter.saveState())

    def place(self) -> None:
        """Give the columns their first widths, unless the last run left some."""
        if not self._is_placed:
            self._is_placed = True
            side, tabs = theme.px(_SIDEBAR[1]), theme.px(_INSPECTOR[1])
            self.splitter.setSizes([side, max(200, self.width() - side - tabs), tabs])

    def _set_least_widths(self) -> None:
        self._sidebar.setMinimumWidth(theme.px(_SIDEBAR[0]))
        self._inspector.setMinimumWidth(theme.px(_INSPECTOR[0]))

    def _restyle(self) -> None:
        """Let the side columns grow and shrink with the zoom."""
        grown, self._zoom = theme.zoom / self._zoom, theme.zoom
        sizes = self.splitter.sizes()
        self._set_least_widths()
        if grown != 1 and len(sizes) > 1:
            outer = [round(size * grown) if i != 1 else 0 for i, size in enumerate(sizes)]
            outer[1] = max(200, sum(sizes) - sum(outer))
            self.splitter.setSizes(outer)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()


def packed(state: QByteArray) -> str:
    """Return a state of Qt as text for the settings."""
    return base64.b64encode(state.data()).decode()


def unpacked(state: str) -> QByteArray:
    """Return a stored state; a damaged one is empty and changes nothing."""
    try:
        return QByteArray(base64.b64decode(state, validate=True))
    except ValueError:
        return QByteArray()
