"""The list of conversations: rows with sections, lamps and search hits, painted by a delegate."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from PySide6.QtCore import (
    QAbstractItemModel,
    QAbstractListModel,
    QMimeData,
    QModelIndex,
    QPersistentModelIndex,
    QRect,
    QRectF,
    QSize,
    Qt,
)
from PySide6.QtGui import QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import QLineEdit, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.strings import tr
from app.ui.theme import theme

Index = QModelIndex | QPersistentModelIndex
ROW = Qt.ItemDataRole.UserRole
DAY_S = 86_400
CHAT = "application/x-inglenook-chat"  # a dragged conversation: its id


@dataclass(frozen=True)
class ChatRow:
    """One line of the list: a section heading, a conversation, or a search hit.

    `lamp` is "ready" (its memory is in a slot), "saved", "cold" or "running".
    `is_more` marks a further hit in the conversation of the row above.
    """

    kind: str
    title: str
    conversation_id: int = 0
    message_id: int | None = None
    snippet: str = ""
    marks: tuple[tuple[int, int], ...] = ()
    lamp: str = "cold"
    is_more: bool = False


def section_of(updated: float, pinned: bool, now: float) -> str:
    """Return the heading under which a conversation stands."""
    if pinned:
        return tr("Pinned")
    day = _day(now) - _day(updated)
    if day <= 0:
        return tr("Today")
    if day == 1:
        return tr("Yesterday")
    if day < 7:
        return tr("This week")
    if day < 31:
        return tr("This month")
    return time.strftime("%Y", time.localtime(updated))


def chat_rows(conversations: list[Any], lamp: Callable[[int], str]) -> list[ChatRow]:
    """Return the rows for conversations in their order, with a heading before each group."""
    rows: list[ChatRow] = []
    section, now = "", time.time()
    for conversation in conversations:
        heading = section_of(conversation.updated, conversation.pinned, now)
        if heading != section:
            section = heading
            rows.append(ChatRow("section", heading))
        title = conversation.title or tr("New chat")
        rows.append(ChatRow("chat", title, conversation.id, lamp=lamp(conversation.id)))
    return rows


def hit_rows(hits: list[Any]) -> list[ChatRow]:
    """Return the rows for the hits of a search."""
    if not hits:
        return [ChatRow("section", tr("Nothing found"))]
    rows = [ChatRow("section", tr("Found"))]
    last = 0
    for hit in sorted(hits, key=_first_of(hits)):
        snippet = "" if hit.message_id is None else hit.snippet
        marks = () if hit.message_id is None else tuple(hit.marks)
        title = hit.title or tr("New chat")
        is_more = hit.conversation_id == last
        last = hit.conversation_id
        row = ChatRow("hit", title, last, hit.message_id, snippet, marks, is_more=is_more)
        rows.append(row)
    return rows


def _first_of(hits: list[Any]) -> Callable[[Any], int]:
    """Return the order that keeps hits of one conversation together, at its first hit."""
    firsts: dict[int, int] = {}
    for i, hit in enumerate(hits):
        firsts.setdefault(hit.conversation_id, i)
    return lambda hit: firsts[hit.conversation_id]


class ChatListModel(QAbstractListModel):
    """The rows as Qt's list model; `renamed` is called with (conversation id, title).

    `lamp_words` says the lamp of a conversation in words, with the numbers of this moment.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[ChatRow] = []
        self.renamed: Callable[[int, str], None] = lambda _id, _title: None
        self.lamp_words: Callable[[int], str] = lambda _id: ""

    def set_rows(self, rows: list[ChatRow]) -> None:
        """Show other rows; the same rows with other lamps only repaint."""
        if [_key(row) for row in rows] == [_key(row) for row in self.rows]:
            self.rows = rows
            if rows:
                self.dataChanged.emit(self.index(0), self.index(len(rows) - 1))
            return
        self.beginResetModel()
        self.rows = rows
        self.endResetModel()

    def set_lamps(self, lamp: Callable[[int], str]) -> None:
        """Show other lamps on the same rows; only what changed is painted again."""
        for i, row in enumerate(self.rows):
            if row.kind == "chat" and row.lamp != (state := lamp(row.conversation_id)):
                self.rows[i] = replace(row, lamp=state)
                self.dataChanged.emit(self.index(i), self.index(i))

    def row_of(self, conversation_id: int) -> int:
        """Return the row of a conversation, or -1."""
        for i, row in enumerate(self.rows):
            if row.conversation_id == conversation_id:
                return i
        return -1

    def rowCount(self, parent: Index | None = None) -> int:
        return len(self.rows)

    def data(self, index: Index, role: int = int(Qt.ItemDataRole.DisplayRole)) -> Any:
        if not index.isValid():
            return None
        row = self.rows[index.row()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return row.title
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._tip(row)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return self._tip(row).replace("\n", ", ")
        return row if role == ROW else None

    def _tip(self, row: ChatRow) -> str:
        words = self.lamp_words(row.conversation_id) if row.kind == "chat" else ""
        return f"{row.title}\n{words}" if words else row.title

    def mimeTypes(self) -> list[str]:
        return [CHAT]

    def mimeData(self, indexes: Sequence[QModelIndex]) -> QMimeData:
        mime = QMimeData()
        if indexes:
            mime.setData(CHAT, str(self.rows[indexes[0].row()].conversation_id).encode())
        return mime

    def flags(self, index: Index) -> Qt.ItemFlag:
        if not index.isValid() or self.rows[index.row()].kind == "section":
            return Qt.ItemFlag.NoItemFlags
        flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        flags |= Qt.ItemFlag.ItemIsDragEnabled
        is_chat = self.rows[index.row()].kind == "chat"
        return flags | Qt.ItemFlag.ItemIsEditable if is_chat else flags

    def setData(self, index: Index, value: Any, role: int = int(Qt.ItemDataRole.EditRole)) -> bool:
        title = str(value).strip()
        if title and title != self.rows[index.row()].title:
            self.renamed(self.rows[index.row()].conversation_id, title)
        return True


class ChatDelegate(QStyledItemDelegate):
    """Paints the rows and edits titles in place."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        row = index.data(ROW)
        if row.kind == "section":
            height = 34 if index.row() else 26
        elif row.is_more:
            height = 26
        else:
            height = 52 if row.snippet else 37
        return QSize(theme.px(100), theme.px(height))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row = index.data(ROW)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rect: QRect = option.rect  # type: ignore[attr-defined]
        state: QStyle.StateFlag = option.state  # type: ignore[attr-defined]
        if row.kind == "section":
            painter.setFont(theme.font(11, 600))
            painter.setPen(theme.color("muted"))
            box = rect.adjusted(theme.px(8), 0, -theme.px(8), -theme.px(7))
            align = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom
            painter.drawText(box, align, row.title.upper())
        else:
            self._paint_row(painter, rect, row, state)
        painter.restore()

    def _paint_row(
        self, painter: QPainter, rect: QRect, row: ChatRow, state: QStyle.StateFlag
    ) -> None:
        box = QRectF(rect).adjusted(0, 1, 0, -1)
        chosen = bool(state & QStyle.StateFlag.State_Selected)
        if chosen or state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("accent_background" if chosen else "own"))
            painter.drawRoundedRect(box, theme.px(8), theme.px(8))
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(theme.color("accent"), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), theme.px(8), theme.px(8))
        left, right = theme.px(8), theme.px(8 if row.kind == "hit" else 26)
        if row.is_more:
            self._paint_snippet(painter, box.adjusted(left, theme.px(2), -right, 0), row)
            return
        text = box.adjusted(left, 0, -right, 0)
        if row.snippet:
            text.setHeight(theme.px(28))
        font = theme.font(13.5, 500)
        painter.setFont(font)
        painter.setPen(theme.color("text"))
        title = QFontMetrics(font).elidedText(
            row.title, Qt.TextElideMode.ElideRight, int(text.width())
        )
        painter.drawText(text, Qt.AlignmentFlag.AlignVCenter, title)
        if row.kind == "chat":
            self._paint_lamp(painter, box, row.lamp)
        elif row.snippet:
            self._paint_snippet(painter, box.adjusted(left, theme.px(24), -right, 0), row)

    def _paint_lamp(self, painter: QPainter, box: QRectF, lamp: str) -> None:
        size = theme.px(8)
        spot = QRectF(box.right() - theme.px(9) - size, box.center().y() - size / 2, size, size)
        if lamp == "running":
            painter.setPen(QPen(theme.color("accent"), theme.px(2)))
            turn = int(time.monotonic() * 360) % 360
            painter.drawArc(spot, -turn * 16, 250 * 16)
            return
        lit = lamp in ("ready", "saved")
        painter.setPen(QPen(theme.color("accent" if lit else "faint"), 1))
        painter.setBrush(theme.color("accent") if lamp == "ready" else Qt.BrushStyle.NoBrush)
        painter.drawEllipse(spot)
        if lamp == "saved":
            painter.setBrush(theme.color("accent"))
            painter.drawPie(spot, 90 * 16, 180 * 16)

    def _paint_snippet(self, painter: QPainter, box: QRectF, row: ChatRow) -> None:
        """Write one line of the snippet, the words that were found in the accent colour."""
        font = theme.font(12)
        metrics = QFontMetrics(font)
        painter.setFont(font)
        painter.setClipRect(box)
        first = row.marks[0][0] if row.marks else 0
        start = row.snippet.rfind(" ", 0, max(0, first - 14)) + 1
        x, end = box.left(), start
        for low, high in (*row.marks, (len(row.snippet), len(row.snippet))):
            for part, token in ((row.snippet[end:low], "soft"), (row.snippet[low:high], "accent")):
                part = part.replace("\n", " ")
                painter.setPen(theme.color(token))
                place = QRectF(x, box.top(), box.width(), theme.px(20))
                painter.drawText(place, Qt.AlignmentFlag.AlignVCenter, part)
                x += metrics.horizontalAdvance(part)
            end = high

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        field = QLineEdit(parent)
        field.setAccessibleName(tr("Title of this chat"))
        return field

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: Index) -> None:
        if isinstance(editor, QLineEdit):
            model.setData(index, editor.text(), int(Qt.ItemDataRole.EditRole))


def dragged_chat(mime: QMimeData) -> int:
    """Return the conversation that is being dragged, or 0."""
    text = bytes(mime.data(CHAT).data()).decode("ascii", "replace") if mime.hasFormat(CHAT) else ""
    return int(text) if text.isdecimal() else 0


def _key(row: ChatRow) -> tuple[Any, ...]:
    return row.kind, row.title, row.conversation_id, row.message_id, row.snippet


def _day(when: float) -> int:
    """Return the number of the local day."""
    local = time.localtime(when)
    return int(when + local.tm_gmtoff) // DAY_S
