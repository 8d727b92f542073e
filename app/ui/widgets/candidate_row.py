"""One candidate of a token as a row: its text, its probability before and after as bars."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QPushButton, QSizePolicy, QWidget

from app.services.token_log import Candidate
from app.strings import tr
from app.ui.theme import theme
from app.ui.widgets.token_text import share

STAGES = {"logits": "model", "temp": "temperature", "temp-ext": "temperature", "dist": "draw"}


def stage_name(name: str) -> str:
    """Return what a stage is called on the page; its hyphens do not part lines."""
    return tr(STAGES.get(name, name)).replace("-", "\u2011")


class CandidateRow(QPushButton):
    """One candidate: its text, a bar before and a bar after, and who cut it.

    Shown is what the whole chain made of it, or what one stage did.
    """

    def __init__(self, candidate: Candidate, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.candidate = candidate
        self._before, self._after, self._words = candidate.before, candidate.after, ""
        self.setObjectName("candidate")
        self.setFont(theme.font(13))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setEnabled(not candidate.is_chosen and not candidate.source.is_forbidden)
        self.show_stage(-1)
        self.setToolTip(self._steps())
        if self.isEnabled():
            self.setCursor(Qt.CursorShape.PointingHandCursor)

    def words(self) -> str:
        """Return both probabilities, or which stage cut the candidate."""
        return self._words

    def show_stage(self, place: int) -> None:
        """Show what the stage at a place did, or with -1 the whole chain."""
        known, steps = self.candidate, self.candidate.steps
        if place < 0 or place >= len(steps):
            self._before, self._after = known.before, known.after
            cut = tr("cut by {stage}", stage=stage_name(known.cut_by)) if known.cut_by else ""
        else:
            self._before = steps[place - 1][1] if place else known.before
            self._after = steps[place][1]
            is_cut = self._before > 0 >= self._after
            cut = tr("cut here") if is_cut else tr("cut before") if self._after <= 0 else ""
        self._words = self._told(cut)
        self.setAccessibleName(f"{known.text}, {self._words}")
        self.update()

    def _told(self, cut: str) -> str:
        before, after = share(self._before), share(self._after)
        if cut:
            return tr("{before} % · {cut}", before=before, cut=cut) if self._before > 0 else cut
        return tr("{before} → {after} %", before=before, after=after)

    def _steps(self) -> str:
        lines = [f"{stage_name(name)}: {share(p)} %" for name, p in self.candidate.steps]
        act = [tr("Click to go on from this one")] if self.isEnabled() else []
        if self.candidate.source.is_forbidden:
            act = [tr("What the answer must be does not allow it here")]
        return "\n".join(lines + act)

    def sizeHint(self) -> QSize:
        return QSize(theme.px(240), theme.px(38))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.setPen(Qt.PenStyle.NoPen)
        if self.candidate.is_chosen or self.underMouse():
            is_chosen = self.candidate.is_chosen
            painter.setBrush(theme.color("accent_background" if is_chosen else "own"))
            painter.drawRoundedRect(area, theme.px(5), theme.px(5))
        if self.hasFocus():
            painter.setPen(theme.color("accent"))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(area, theme.px(5), theme.px(5))
        inside = area.adjusted(theme.px(7), theme.px(3), -theme.px(7), -theme.px(4))
        middle = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        words, right = self.words(), int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop)
        painter.setPen(theme.color("soft"))
        taken = painter.boundingRect(inside, right, words).width()
        painter.drawText(inside, right, words)
        painter.setPen(theme.color("soft" if self._after <= 0 else "text"))
        text = painter.fontMetrics().elidedText(
            self.candidate.text, Qt.TextElideMode.ElideRight, int(inside.width() - taken) - 8
        )
        painter.drawText(inside, middle, text)
        self._paint_bars(painter, inside)

    def _paint_bars(self, painter: QPainter, inside: QRectF) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        height = theme.px(4)
        pairs = ((self._before, "faint", 2), (self._after, "accent", 1))
        for p, colour, from_below in pairs:
            painter.setBrush(theme.color(colour))
            y = inside.bottom() - from_below * (height + 1)
            painter.drawRect(QRectF(inside.left(), y, inside.width() * min(1.0, p), height))
