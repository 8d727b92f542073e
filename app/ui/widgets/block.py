"""One block of a message laid out and painted: prose, headings, list items, rules."""

import re
from functools import lru_cache
from typing import Any

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QColor,
    QFontMetricsF,
    QPainter,
    QPalette,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextOption,
)

from app.ui.markdown import Block
from app.ui.theme import theme

_HEADINGS = {1: 20.0, 2: 17.5, 3: 15.5}
# Qt looks for a place to break a line in time that grows with the square of a word's length.
_ENDLESS_WORD = re.compile(r"\S{4000}")


def wrap_mode(text: str) -> QTextOption.WrapMode:
    """Return how to wrap a text: at words, or anywhere when a word is too long for that."""
    endless = _ENDLESS_WORD.search(text) is not None
    modes = QTextOption.WrapMode
    return modes.WrapAnywhere if endless else modes.WrapAtWordBoundaryOrAnywhere


class BlockView:
    """A block with its document, its place and its height.

    What runs to the left has its markers and bars at the right.

    Attributes:
        mirrors: whether it can stand at the right at all.
        y, height: place inside the message, in pixels; `y` is set by the message.
        selected: (start, end) positions to paint as selected, or None.
    """

    mirrors = True

    def __init__(self, block: Block) -> None:
        self.block = block
        self.y = 0
        self.height = 0
        self.width = -1
        self.selected: tuple[int, int] | None = None
        self.document = _document()
        self._fill()

    # ------------------------------------------------------------ content

    def replace(self, block: Block) -> bool:
        """Show another state of the same open block; False when a different view is needed."""
        if type(self) is not view_class(block):
            return False
        before, self.block = self.block, block
        if (block.html, block.level) != (before.html, before.level):
            self._fill()
            self.width = -1
        elif (block.indent, block.quote) != (before.indent, before.quote):
            self.width = -1
        return True

    def text(self) -> str:
        """Return the block's text as it is selected and copied."""
        marker = f"{self.block.marker} " if self.block.marker else ""
        return marker + self.document.toPlainText()

    def selected_text(self) -> str:
        """Return the selected part of the text."""
        if self.selected is None:
            return ""
        cursor = QTextCursor(self.document)
        cursor.setPosition(self.selected[0])
        cursor.setPosition(self.selected[1], QTextCursor.MoveMode.KeepAnchor)
        return cursor.selectedText().replace("\u2029", "\n").replace("\u2028", "\n")

    def last_position(self) -> int:
        """Return the position behind the last character."""
        return max(0, self.document.characterCount() - 1)

    def _fill(self) -> None:
        self.document.setDefaultFont(theme.font())
        if self.block.kind == "heading":
            size = _HEADINGS.get(self.block.level, 14.0)
            self.document.setDefaultFont(theme.font(size, 600))
        option = self.document.defaultTextOption()
        option.setWrapMode(wrap_mode(self.block.html))
        self.document.setDefaultTextOption(option)
        self.document.setHtml(self.block.html)

    # ------------------------------------------------------------ layout

    @property
    def inset(self) -> int:
        """Return the distance of the text from the edge where it begins, in pixels."""
        return theme.px(22) * self.block.indent + theme.px(16) * self.block.quote

    @property
    def runs_left(self) -> bool:
        """Tell whether it begins at the right edge."""
        direction = self.document.begin().textDirection()
        return self.mirrors and direction == Qt.LayoutDirection.RightToLeft

    @property
    def left(self) -> int:
        """Return where the text has its left edge, in pixels."""
        return 0 if self.runs_left else self.inset

    def space_above(self, above: Block) -> int:
        """Return the gap to the block above, in pixels."""
        if self.block.kind == "heading":
            return theme.px(18 if self.block.level < 3 else 14)
        goes_on = self.block.tight and above.indent > 0
        return theme.px(4 if goes_on else 10)

    def set_width(self, width: int) -> int:
        """Lay out for `width` pixels and return the height."""
        if width != self.width:
            self.width = width
            self.document.setTextWidth(max(40, width - self.inset))
            self.height = round(self.document.size().height())
        return self.height

    def natural_width(self) -> int:
        """Return the width that the text would like to have, in pixels."""
        return round(self.document.idealWidth()) + self.inset + 1

    # ------------------------------------------------------------ paint and hit

    def paint(self, painter: QPainter, clip: QRectF) -> None:
        """Paint at the origin of the painter; `clip` is what must be painted."""
        self._paint_quote(painter)
        if self.block.marker:
            self._paint_marker(painter)
        self._paint_document(painter, QPointF(self.left, 0), clip)

    def _paint_document(self, painter: QPainter, at: QPointF, clip: QRectF) -> None:
        context = QAbstractTextDocumentLayout.PaintContext()
        token = "soft" if self.block.quote else "text"
        context.palette.setColor(QPalette.ColorRole.Text, theme.color(token))
        context.clip = clip.translated(-at)
        if self.selected is not None:
            selection = QAbstractTextDocumentLayout.Selection()
            selection.cursor = QTextCursor(self.document)
            selection.cursor.setPosition(self.selected[0])
            selection.cursor.setPosition(self.selected[1], QTextCursor.MoveMode.KeepAnchor)
            selection.format = _selection_format(theme.tokens.accent)
            context.selections = [selection]
        painter.save()
        painter.translate(at)
        self.document.documentLayout().draw(painter, context)
        painter.restore()

    def _paint_quote(self, painter: QPainter) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("line"))
        for depth in range(self.block.quote):
            left = theme.px(16) * depth + theme.px(22) * self.block.indent
            left = self.width - left - theme.px(3) if self.runs_left else left
            painter.drawRoundedRect(QRectF(left, 0, theme.px(3), self.height), 1, 1)

    def _paint_marker(self, painter: QPainter) -> None:
        font = theme.font()
        painter.setFont(font)
        painter.setPen(theme.color("soft"))
        ascent = self.document.documentLayout().blockBoundingRect(self.document.begin())
        line = self.document.begin().layout().lineAt(0)
        height = line.height() if line.isValid() else ascent.height()
        gap, wide = self.inset - theme.px(7), theme.px(60)
        side = Qt.AlignmentFlag.AlignLeft if self.runs_left else Qt.AlignmentFlag.AlignRight
        box = QRectF(self.width - gap if self.runs_left else gap - wide, 0, wide, height)
        painter.drawText(box, side | Qt.AlignmentFlag.AlignTop, self.block.marker)

    def hit(self, x: float, y: float) -> int:
        """Return the text position nearest to a point of the view."""
        return self.document.documentLayout().hitTest(
            QPointF(x - self.left, y), Qt.HitTestAccuracy.FuzzyHit
        )

    def link_at(self, x: float, y: float) -> str:
        """Return the address of the link under a point, or an empty string."""
        return self.document.documentLayout().anchorAt(QPointF(x - self.left, y))

    def top_of(self, position: int) -> int:
        """Return how far below the top of the view the line of a text position begins."""
        block = self.document.findBlock(position)
        line = block.layout().lineForTextPosition(position - block.position())
        top = self.document.documentLayout().blockBoundingRect(block).top()
        return round(top + (line.y() if line.isValid() else 0))

    def end_point(self) -> QRectF:
        """Return the rectangle of a caret behind the last character."""
        last = self.document.lastBlock()
        layout = last.layout()
        if not layout.lineCount():
            return QRectF(self.left, 0, 1, theme.px(18))
        line = layout.lineAt(layout.lineCount() - 1)
        x: Any = line.cursorToX(last.length() - 1)
        at = float(x[0] if isinstance(x, tuple) else x)
        top = self.document.documentLayout().blockBoundingRect(last).top() + line.y()
        ascent = QFontMetricsF(self.document.defaultFont()).height()
        return QRectF(self.left + at, top, 1, min(line.height(), ascent))


class RuleView(BlockView):
    """A thin line across the text."""

    def set_width(self, width: int) -> int:
        """See BlockView."""
        self.width, self.height = width, theme.px(13)
        return self.height

    def paint(self, painter: QPainter, clip: QRectF) -> None:
        """See BlockView."""
        y = self.height // 2
        painter.fillRect(QRectF(self.inset, y, self.width - self.inset, 1), theme.color("line"))


def view_class(block: Block) -> type[BlockView]:
    """Return the class that shows this kind of block."""
    from app.ui.widgets.framed import CodeView, TableView

    return {"code": CodeView, "table": TableView, "rule": RuleView}.get(block.kind, BlockView)


def make_view(block: Block) -> BlockView:
    """Return a view of the block."""
    return view_class(block)(block)


def _document() -> QTextDocument:
    document = QTextDocument()
    document.setUndoRedoEnabled(False)
    document.setDocumentMargin(0)
    document.setIndentWidth(theme.px(20))
    document.setDefaultStyleSheet(_document_style(theme.tokens.name, theme.zoom, theme.text_face))
    return document


@lru_cache(maxsize=8)
def _document_style(appearance: str, zoom: float, face: str) -> str:
    tokens = theme.tokens
    percent = round(100 * theme.px(21) / QFontMetricsF(theme.font()).lineSpacing())
    code_size = theme.px(12.5)
    return (
        f"p {{ margin: 0; line-height: {percent}%; }} .plain {{ white-space: pre-wrap; }}"
        f"a {{ color: {tokens.accent_text}; text-decoration: underline; }}"
        f"code {{ font-family: '{theme.code_face}'; font-size: {code_size}px;"
        f" background-color: {tokens.own}; }}"
        f"table {{ border-collapse: collapse; border-color: {tokens.line}; }}"
        f"b, th {{ font-weight: 600; }} th {{ border-bottom: 1px solid {tokens.faint}; }}"
        f"td {{ border-bottom: 1px solid {tokens.line}; }}"
    )


@lru_cache(maxsize=4)
def _selection_format(accent: str) -> QTextCharFormat:
    format_ = QTextCharFormat()
    color = QColor(accent)
    color.setAlphaF(0.28)
    format_.setBackground(color)
    return format_
