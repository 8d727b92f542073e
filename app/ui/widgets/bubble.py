"""The shape behind a person's own message: round, but for the corner where it was written."""

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainterPath

from app.ui.theme import theme


def bubble(box: QRectF) -> QPainterPath:
    """Return the outline of a bubble that fills a box, in pixels."""
    r, small = theme.px(14), theme.px(4)
    path = QPainterPath()
    path.moveTo(box.left() + r, box.top())
    path.lineTo(box.right() - r, box.top())
    path.quadTo(box.right(), box.top(), box.right(), box.top() + r)
    path.lineTo(box.right(), box.bottom() - small)
    path.quadTo(box.right(), box.bottom(), box.right() - small, box.bottom())
    path.lineTo(box.left() + r, box.bottom())
    path.quadTo(box.left(), box.bottom(), box.left(), box.bottom() - r)
    path.lineTo(box.left(), box.top() + r)
    path.quadTo(box.left(), box.top(), box.left() + r, box.top())
    return path
