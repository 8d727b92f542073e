"""An answer as clickable tokens, each tinted by how likely it was."""

import math
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QEvent, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFontMetricsF,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.services.token_log import shown
from app.strings import tr
from app.ui.theme import theme


class TokenText(QWidget):
    """Lines of tokens; only what comes new is laid out, only what is seen is painted.

    Signals:
        picked(int): the place of the token that was clicked or reached by the arrows.
    """

    picked = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(tr("Tokens of the answer"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFont(theme.font(13))
        self.chosen = -1
        self._tokens: list[Any] = []
        self._boxes: list[QRectF] = []
        self._fit()

    def set_tokens(self, tokens: Sequence[Any]) -> None:
        """Show tokens (piece, logprob); those shown already are not laid out again."""
        kept = len(self._tokens)
        if kept > len(tokens) or any(
            a is not b for a, b in zip(self._tokens, tokens, strict=False)
        ):
            self._boxes, self.chosen = [], -1
        self._tokens = list(tokens)
        self._lay_out()

    def box_of(self, place: int) -> QRectF:
        """Return where a token stands."""
        return self._boxes[place]

    def choose(self, place: int) -> None:
        """Mark a token and tell of it; a place that is not there is passed by."""
        if 0 <= place < len(self._tokens):
            self.chosen = place
            token = self._tokens[place]
            words = tr("{text}, {p} %", text=shown(token.piece), p=percent(token.logprob))
            self.setAccessibleDescription(words)
            self.update()
            self.picked.emit(place)

    def _lay_out(self) -> None:
        metrics = QFontMetricsF(self.font())
        gap, line = theme.px(2), metrics.lineSpacing() + theme.px(6)
        x, y = 0.0, 0.0
        if self._boxes:
            last = self._boxes[-1]
            x, y = last.right() + gap, last.top()
            if b"\n" in self._tokens[len(self._boxes) - 1].piece:
                x, y = 0.0, y + line
        for token in self._tokens[len(self._boxes) :]:
            width = metrics.horizontalAdvance(shown(token.piece)) + theme.px(4)
            width = min(width, float(max(1, self.width())))
            if x and x + width > self.width():
                x, y = 0.0, y + line
            self._boxes.append(QRectF(x, y, width, line - gap))
            x += width + gap
            if b"\n" in token.piece:
                x, y = 0.0, y + line
        self._fit()
        self.update()

    def _fit(self) -> None:
        height = self._boxes[-1].bottom() if self._boxes else 0.0
        self.setFixedHeight(math.ceil(height) + theme.px(2))

    def sizeHint(self) -> QSize:
        return QSize(theme.px(240), self.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._boxes = []
            self._lay_out()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        seen, radius = QRectF(event.rect()), theme.px(3)
        for place, box in enumerate(self._boxes):
            if not box.intersects(seen):
                continue
            token = self._tokens[place]
            tint = theme.color("accent")
            tint.setAlphaF(0.55 * (1 - math.exp(token.logprob)))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(tint)
            if place == self.chosen:
                painter.setPen(theme.color("accent" if self.hasFocus() else "text"))
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
            painter.setPen(theme.color("text"))
            inside = box.adjusted(theme.px(2), 0, 0, 0)
            painter.drawText(inside, int(Qt.AlignmentFlag.AlignVCenter), shown(token.piece))

    def _place_at(self, point: QPoint) -> int:
        x, y = float(point.x()), float(point.y())
        return next((i for i, box in enumerate(self._boxes) if box.contains(x, y)), -1)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.setFocus()
        self.choose(self._place_at(event.position().toPoint()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        last = len(self._tokens) - 1
        if event.key() in steps:
            self.choose(min(last, max(0, self.chosen + steps[Qt.Key(event.key())])))
        elif event.key() in (Qt.Key.Key_Home, Qt.Key.Key_End):
            self.choose(0 if event.key() == Qt.Key.Key_Home else last)
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent):
            place = self._place_at(event.pos())
            known = self._tokens[place] if place >= 0 else None
            QToolTip.showText(event.globalPos(), f"{percent(known.logprob)} %" if known else "")
            return True
        return super().event(event)


def percent(logprob: float) -> str:
    """Return ln p as per cent with as many digits as it deserves."""
    return share(math.exp(logprob))


def share(p: float) -> str:
    """Return a probability as per cent with as many digits as it deserves: 87, 3.4, 0.02, 0."""
    value = 100 * p
    if value >= 10:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}" if value >= 0.01 else "0"
