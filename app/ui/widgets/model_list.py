"""Models on this machine as a list of two lines each: name, and what is known about it."""

from pathlib import Path
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.services.model_words import line_for, title_of
from app.strings import tr
from app.ui.theme import theme

Index = QModelIndex | QPersistentModelIndex
MODEL = Qt.ItemDataRole.UserRole
ROW_HEIGHT = 50


class FoundModels(QAbstractListModel):
    """The rows; a model with a problem is shown with it and cannot be chosen."""

    def __init__(self) -> None:
        super().__init__()
        self.models: list[Any] = []
        self.loaded: Path | None = None  # marked as the one that answers now

    def set_models(self, models: list[Any]) -> None:
        """Show other models."""
        self.beginResetModel()
        self.models = list(models)
        self.endResetModel()

    def rowCount(self, parent: Index | None = None) -> int:
        return len(self.models)

    def data(self, index: Index, role: int = int(Qt.ItemDataRole.DisplayRole)) -> Any:
        if not index.isValid():
            return None
        model = self.models[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return title_of(model)
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{model.path}\n{model.problem}".strip()
        if role == Qt.ItemDataRole.AccessibleTextRole:
            loaded = tr("loaded, ") if self.is_loaded(model) else ""
            return f"{title_of(model)}, {loaded}{model.problem or line_for(model)}"
        return model if role == MODEL else None

    def is_loaded(self, model: Any) -> bool:
        """Tell whether this is the model in memory."""
        return self.loaded is not None and self.loaded in model.paths

    def flags(self, index: Index) -> Qt.ItemFlag:
        if not index.isValid() or self.models[index.row()].problem:
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable


class _Delegate(QStyledItemDelegate):
    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(theme.px(200), theme.px(ROW_HEIGHT))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        model = index.data(MODEL)
        state: QStyle.StateFlag = option.state  # type: ignore[attr-defined]
        box = QRectF(option.rect).adjusted(0, 1, 0, -1)  # type: ignore[attr-defined]
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        chosen = bool(state & QStyle.StateFlag.State_Selected)
        if chosen or state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("accent_background" if chosen else "own"))
            painter.drawRoundedRect(box, theme.px(8), theme.px(8))
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(theme.color("accent"), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), theme.px(8), theme.px(8))
        text = box.adjusted(theme.px(10), theme.px(5), -theme.px(10), -theme.px(5))
        found = index.model()
        if isinstance(found, FoundModels) and found.is_loaded(model):
            size = theme.px(8)
            spot = QRectF(text.right() - size, box.center().y() - size / 2, size, size)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("good"))
            painter.drawEllipse(spot)
            text.setRight(text.right() - 2 * size)
        lines = (
            (title_of(model), theme.font(13.5, 500), "soft" if model.problem else "text", 0),
            (model.problem or line_for(model), theme.font(12), "soft", theme.px(20)),
        )
        for line, font, token, top in lines:
            painter.setFont(font)
            painter.setPen(theme.color(token))
            shown = QFontMetrics(font).elidedText(
                line, Qt.TextElideMode.ElideRight, int(text.width())
            )
            place = QRectF(text.left(), text.top() + top, text.width(), theme.px(19))
            painter.drawText(place, Qt.AlignmentFlag.AlignVCenter, shown)
        painter.restore()


class ModelList(QListView):
    """The list view with its model and delegate."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.found = FoundModels()
        self.setModel(self.found)
        self.setItemDelegate(_Delegate(self))
        self.setAccessibleName(tr("Models on this machine"))
        self.setMouseTracking(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)

    def set_models(self, models: list[Any]) -> None:
        """Show other models."""
        self.found.set_models(models)

    def height_for(self, n_rows: int) -> int:
        """Return the height that shows that many rows, in pixels."""
        return theme.px(ROW_HEIGHT) * n_rows + 2
