"""How an answer was made, as a small popup of labels and values."""

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QGridLayout, QScrollArea, QVBoxLayout, QWidget

from app.services.figures import one_line
from app.strings import tr
from app.ui.theme import theme
from app.ui.widgets.controls import button, label

_ONE_LINE, _LONGEST = 52, 160  # characters of a value on one line, and on the page at all


class DetailsPopup(QFrame):
    """Shows rows of (label, value), headings without a value; Esc or a click elsewhere closes."""

    def __init__(self, title: str, rows: list[tuple[str, str]], parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setObjectName("popup")
        self.setAccessibleName(title)
        self._rows = rows
        box = QVBoxLayout(self)
        box.setContentsMargins(theme.px(16), theme.px(14), theme.px(16), theme.px(12))
        box.setSpacing(theme.px(10))
        box.addWidget(label(title, "subheading"))
        inside = QWidget(self)
        inside.setObjectName("scrolled")
        grid = QGridLayout(inside)
        grid.setContentsMargins(0, 0, theme.px(8), 0)
        grid.setHorizontalSpacing(theme.px(24))
        grid.setVerticalSpacing(theme.px(4))
        for i, (name, value) in enumerate(rows):
            if not value:
                section = label(name, "subheading")
                section.setContentsMargins(0, theme.px(8), 0, 0)
                grid.addWidget(section, i, 0, 1, 2)
                continue
            shown = label(one_line(value, _LONGEST), "code")
            if len(value) > _ONE_LINE:
                shown.setWordWrap(True)
                shown.setAlignment(Qt.AlignmentFlag.AlignRight)
                shown.setMinimumWidth(theme.px(380))
                shown.setToolTip(one_line(value, 1000))
            shown.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            grid.addWidget(label(name, "secondary"), i, 0)
            grid.addWidget(shown, i, 1, Qt.AlignmentFlag.AlignRight)
        area = QScrollArea(self)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidget(inside)
        area.setFixedHeight(min(theme.px(420), inside.sizeHint().height() + 4))
        area.setMinimumWidth(inside.sizeHint().width() + theme.px(16))
        box.addWidget(area)
        copy = button(tr("Copy"), "quiet", tr("Copy all of it"), self)
        copy.clicked.connect(self._copy)
        box.addWidget(copy, 0, Qt.AlignmentFlag.AlignRight)

    def open_at(self, point: QPoint) -> None:
        """Show the popup with its lower left corner at a global point, inside the screen."""
        self.adjustSize()
        screen = self.screen().availableGeometry()
        x = min(max(screen.left(), point.x()), screen.right() - self.width())
        y = max(screen.top(), point.y() - self.height())
        self.move(x, y)
        self.show()

    def _copy(self) -> None:
        text = "\n".join(f"{name}: {value}" if value else f"\n{name}" for name, value in self._rows)
        QGuiApplication.clipboard().setText(text)
