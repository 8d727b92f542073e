"""How far an answer is before its first word: what it waits for, how much of the prompt is read."""

from dataclasses import dataclass

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter

from app.strings import count, seconds, tr
from app.ui.theme import theme

HEIGHT = 58  # in design pixels


@dataclass
class Reading:
    """How far the prompt is read; counts are tokens.

    `waiting_for` says what comes before that, `waited` how far it is, 0 to 1.
    """

    n_prompt: int = 0
    n_cached: int = 0
    n_read: int = 0
    elapsed_ms: float = 0.0
    waiting_for: str = ""
    waited: float = 0.0

    def done(self) -> float:
        """Return the known share, 0 to 1."""
        known = self.n_cached + self.n_read
        return min(1.0, known / self.n_prompt) if self.n_prompt else self.waited

    def sentence(self) -> str:
        """Return the line above the bar."""
        if not self.n_prompt:
            return self.waiting_for or tr("Waiting for the engine…")
        line = tr(
            "Reading {read} of {all} tokens",
            read=count(self.n_cached + self.n_read),
            all=count(self.n_prompt),
        )
        left = self.n_prompt - self.n_cached - self.n_read
        if self.n_read and self.elapsed_ms > 500 and left > 0:
            line += tr(" · {time} left", time=seconds(self.elapsed_ms / self.n_read * left / 1000))
        return line

    def paint(self, painter: QPainter, left: int, top: int, width: int) -> None:
        """Paint the line, the bar, and what was still in memory."""
        painter.setFont(theme.font(12.5))
        painter.setPen(theme.color("soft"))
        painter.drawText(left, top + theme.px(14), self.sentence())
        bar = QRectF(left, top + theme.px(24), width, theme.px(4))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("line"))
        painter.drawRoundedRect(bar, 2, 2)
        bar.setWidth(bar.width() * self.done())
        painter.setBrush(theme.color("accent"))
        painter.drawRoundedRect(bar, 2, 2)
        if self.n_cached:
            painter.setPen(theme.color("soft"))
            line = tr("{n} tokens were still in memory", n=count(self.n_cached))
            painter.drawText(left, top + theme.px(48), line)
