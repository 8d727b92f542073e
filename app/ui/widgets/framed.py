"""Blocks in a frame that scroll sideways instead of widening the page: code and tables."""

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QPainter,
    QPainterPath,
    QPen,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextLayout,
    QTextOption,
)

from app.strings import tr
from app.ui.highlight import color_spans
from app.ui.markdown import Block
from app.ui.theme import theme
from app.ui.widgets.block import BlockView


class FramedView(BlockView):
    """A block whose content may be wider than the page.

    Attributes:
        offset: how far the content is scrolled to the left, in pixels.
        content_width: the width that the content needs.
    """

    offset = 0
    content_width = 0
    mirrors = False

    def origin(self) -> QPointF:
        """Return where the document starts inside the view."""
        return QPointF(self.inset, 0)

    def visible_width(self) -> int:
        """Return the width that is there for the content."""
        return max(40, self.width - self.inset)

    def scroll_range(self) -> int:
        """Return the largest offset; 0 when everything fits."""
        return max(0, self.content_width - self.visible_width())

    def scroll_by(self, pixels: int) -> bool:
        """Scroll sideways; return False when there is nothing left to scroll."""
        before = self.offset
        self.offset = min(self.scroll_range(), max(0, self.offset + pixels))
        return self.offset != before

    def scrollbar_rect(self) -> QRectF:
        """Return the handle of the sideways scroll bar; empty when everything fits."""
        span = self.scroll_range()
        if not span:
            return QRectF()
        width = self.visible_width()
        length = max(theme.px(28), width * width / (width + span))
        left = self.origin().x() + (width - length) * self.offset / span
        return QRectF(left, self.height - theme.px(7), length, theme.px(4))

    def drag_to(self, x: float) -> None:
        """Put the middle of the scroll handle at `x`."""
        handle = self.scrollbar_rect()
        free = self.visible_width() - handle.width()
        part = (x - self.origin().x() - handle.width() / 2) / free if free > 0 else 0
        self.offset = round(min(1.0, max(0.0, part)) * self.scroll_range())

    def hit(self, x: float, y: float) -> int:
        """See BlockView."""
        point = QPointF(x + self.offset, y) - self.origin()
        layout = self.document.documentLayout()
        return max(0, layout.hitTest(point, Qt.HitTestAccuracy.FuzzyHit))

    def link_at(self, x: float, y: float) -> str:
        """See BlockView."""
        point = QPointF(x + self.offset, y) - self.origin()
        return self.document.documentLayout().anchorAt(point)

    def _paint_content(self, painter: QPainter, clip: QRectF) -> None:
        origin = self.origin()
        window = QRectF(origin.x(), 0, self.visible_width(), self.height)
        painter.save()
        painter.setClipRect(window, Qt.ClipOperation.IntersectClip)
        self._paint_document(painter, origin - QPointF(self.offset, 0), clip.intersected(window))
        painter.restore()
        handle = self.scrollbar_rect()
        if not handle.isEmpty():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("faint"))
            painter.drawRoundedRect(handle, handle.height() / 2, handle.height() / 2)


class TableView(FramedView):
    """A table: as wide as it needs, wrapped to the page when it can be, scrolled when not."""

    def set_width(self, width: int) -> int:
        """See BlockView."""
        if width != self.width:
            self.width = width
            self.document.setTextWidth(-1)
            if self.document.idealWidth() > self.visible_width():
                self.document.setTextWidth(self.visible_width())
            size = self.document.size()
            self.content_width = round(size.width())
            self.offset = min(self.offset, self.scroll_range())
            self.height = round(size.height()) + (theme.px(10) if self.scroll_range() else 0)
        return self.height

    def paint(self, painter: QPainter, clip: QRectF) -> None:
        """See BlockView."""
        self._paint_quote(painter)
        self._paint_content(painter, clip)


class CodeView(FramedView):
    """A code block: label, frame, colours; an open one takes appended text at constant cost."""

    def _fill(self) -> None:
        self.document.setDefaultFont(theme.font(12.5, code=True))
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.NoWrap)
        option.setTabStopDistance(theme.px(12.5) * 2.4)
        self.document.setDefaultTextOption(option)
        self.document.setPlainText(self.block.text)
        cursor = QTextCursor(self.document)
        cursor.select(QTextCursor.SelectionType.Document)
        spaced = QTextBlockFormat()
        spaced.setLineHeight(115, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        cursor.mergeBlockFormat(spaced)
        self._color(0)

    def replace(self, block: Block) -> bool:
        """See BlockView; text that only grew is appended, finished lines are coloured."""
        if block.kind != "code":
            return False
        before = self.block
        self.block = block
        grown = block.text.startswith(before.text) and block.language == before.language
        if not grown or len(block.text) == len(before.text):
            if not grown or before.closed != block.closed:
                self._fill()
        else:
            cursor = QTextCursor(self.document)
            cursor.movePosition(QTextCursor.MoveOperation.End)
            first = cursor.blockNumber()
            cursor.insertText(block.text[len(before.text) :])
            self._color(first, line_by_line=True)
        self.width = -1
        return True

    def origin(self) -> QPointF:
        """See FramedView."""
        return QPointF(self.inset + theme.px(12), theme.px(38))

    def visible_width(self) -> int:
        """See FramedView."""
        return max(40, self.width - self.inset - 2 * theme.px(12))

    def space_above(self, above: Block) -> int:
        """See BlockView."""
        return theme.px(10)

    def set_width(self, width: int) -> int:
        """See BlockView."""
        if width != self.width:
            self.width = width
            size = self.document.size()
            self.content_width = round(self.document.idealWidth())
            self.offset = min(self.offset, self.scroll_range())
            self.height = round(size.height()) + theme.px(38 + 12)
        return self.height

    def natural_width(self) -> int:
        """See BlockView."""
        return round(self.document.idealWidth()) + self.inset + 2 * theme.px(12) + 1

    def paint(self, painter: QPainter, clip: QRectF) -> None:
        """See BlockView."""
        self._paint_quote(painter)
        head, radius = theme.px(28), theme.px(10)
        frame = QRectF(self.inset + 0.5, 0.5, self.width - self.inset - 1, self.height - 1)
        path = QPainterPath()
        path.addRoundedRect(frame, radius, radius)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillPath(path, theme.color("code"))
        painter.setPen(QPen(theme.color("line"), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(path)
        painter.fillRect(QRectF(frame.left(), head, frame.width(), 1), theme.color("line"))
        painter.setFont(theme.font(12))
        painter.setPen(theme.color("soft"))
        label = self.block.language or tr("code")
        box = QRectF(frame.left() + theme.px(12), 0, frame.width() - theme.px(90), head)
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, label)
        self._paint_content(painter, clip)

    def copy_corner(self) -> tuple[int, int]:
        """Return the right edge and the middle of the label line, where *Copy* belongs."""
        return self.width - theme.px(6), theme.px(14)

    def _color(self, first: int, line_by_line: bool = False) -> None:
        """Colour from the text block `first` on; an open block line by line, once per line."""
        if line_by_line:
            line = self.document.findBlockByNumber(first)
            while line.isValid():
                spans = color_spans(line.text(), self.block.language)
                line.layout().setFormats(_ranges(spans))
                self.document.markContentsDirty(line.position(), line.length())
                line = line.next()
            return
        line = self.document.begin()
        for start, spans in _by_line(color_spans(self.block.text, self.block.language), line):
            start.layout().setFormats(_ranges(spans))
        self.document.markContentsDirty(0, self.document.characterCount())


def _by_line(spans, line):  # noqa: ANN001, ANN202 (Qt's text blocks by value)
    """Yield (text block, its spans with offsets inside it) for spans over the whole document."""
    todo = list(reversed(spans))
    while line.isValid():
        here, end = [], line.position() + line.length()
        while todo and todo[-1][0] < end:
            start, length, color = todo.pop()
            inside = start - line.position()
            here.append((max(0, inside), min(length + min(0, inside), end - start), color))
            if start + length > end:
                todo.append((end, start + length - end, color))
                break
        yield line, here
        line = line.next()


def _ranges(spans: list[tuple[int, int, str]]) -> list[QTextLayout.FormatRange]:
    ranges = []
    for start, length, color in spans:
        part = QTextLayout.FormatRange()
        part.start, part.length = start, length
        format_ = QTextCharFormat()
        format_.setForeground(QColor(getattr(theme.tokens, color)))
        if color == "comment":
            format_.setFontItalic(False)
        part.format = format_
        ranges.append(part)
    return ranges
