"""The Tokens tab: an answer token by token, and what every stage did to the candidates of one."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.services.token_log import Candidate, candidates
from app.strings import tr
from app.ui.bound import bound
from app.ui.theme import theme
from app.ui.widgets.controls import button, label
from app.ui.widgets.token_text import TokenText, share

STAGES = {"logits": "model", "temp": "temperature", "temp-ext": "temperature", "dist": "draw"}


class CandidateRow(QPushButton):
    """One candidate: its text, a bar before and a bar after the chain, and who cut it."""

    def __init__(self, candidate: Candidate, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.candidate = candidate
        self.setObjectName("candidate")
        self.setFont(theme.font(13))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setEnabled(not candidate.is_chosen)
        self.setAccessibleName(f"{candidate.text}, {self.words()}")
        self.setToolTip(self._steps())
        if self.isEnabled():
            self.setCursor(Qt.CursorShape.PointingHandCursor)

    def words(self) -> str:
        """Return both probabilities, or which stage cut the candidate."""
        before = share(self.candidate.before)
        if self.candidate.cut_by:
            return tr("{before} % · cut by {stage}", before=before, stage=self.candidate.cut_by)
        return tr("{before} → {after} %", before=before, after=share(self.candidate.after))

    def _steps(self) -> str:
        lines = [f"{STAGES.get(name, name)}: {share(p)} %" for name, p in self.candidate.steps]
        act = [] if self.candidate.is_chosen else [tr("Click to go on from this one")]
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
        painter.setPen(theme.color("soft" if self.candidate.cut_by else "text"))
        text = painter.fontMetrics().elidedText(
            self.candidate.text, Qt.TextElideMode.ElideRight, int(inside.width() - taken) - 8
        )
        painter.drawText(inside, middle, text)
        self._paint_bars(painter, inside)

    def _paint_bars(self, painter: QPainter, inside: QRectF) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        height = theme.px(4)
        pairs = ((self.candidate.before, "faint", 2), (self.candidate.after, "accent", 1))
        for p, colour, from_below in pairs:
            painter.setBrush(theme.color(colour))
            y = inside.bottom() - from_below * (height + 1)
            painter.drawRect(QRectF(inside.left(), y, inside.width() * min(1.0, p), height))


class TokensPanel(QWidget):
    """Shows what is known of the tokens of one answer.

    Signals:
        rival_chosen(int, object): go on from another candidate at a place.
        replay_wanted(): write the answer again, its tokens looked into.
    """

    rival_chosen = Signal(int, object)
    replay_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("scrolled")
        self.note = label("", "secondary", self)
        self.note.setWordWrap(True)
        tip = tr("Write the answer again with its own seed, to see its tokens")
        self.replay = button(tr("Replay"), "preset", tip, self)
        self.replay.clicked.connect(self.replay_wanted)
        self.text = TokenText(self)
        self.text.picked.connect(self._show_candidates)
        self.title = label(tr("CANDIDATES"), "section", self)
        self.stages = label("", "secondary", self)
        self.stages.setWordWrap(True)
        self.rows: list[CandidateRow] = []
        self._tokens: Sequence[Any] = ()
        self._box = QVBoxLayout(self)
        self._box.setContentsMargins(theme.px(16), theme.px(12), theme.px(14), theme.px(16))
        self._box.setSpacing(theme.px(7))
        for part in (self.note, self.replay, self.text, self.title, self.stages):
            self._box.addWidget(part)
        self._box.addStretch(1)
        self.show_answer(None, can_replay=False)

    def show_answer(self, tokens: Sequence[Any] | None, can_replay: bool) -> None:
        """Show the tokens of an answer; None: nobody looked while it was written."""
        self._tokens = tokens or ()
        self.replay.setVisible(not tokens and can_replay)
        if tokens:
            self.note.setText(tr("The stronger the tint, the less likely the token was."))
        else:
            self.note.setText(tr("The tokens of answers written while this tab is open."))
        self.text.setVisible(bool(tokens))
        self.text.set_tokens(self._tokens)
        if self.text.chosen < 0:
            self._clear()

    def _clear(self) -> None:
        for row in self.rows:
            self._box.removeWidget(row)
            row.hide()
            row.deleteLater()
        self.rows = []
        self.title.hide()
        self.stages.hide()

    def _show_candidates(self, place: int) -> None:
        self._clear()
        token = self._tokens[place]
        self.title.show()
        lefts = [f"{STAGES.get(s.name, s.name)} {s.n_left:,}" for s in token.stages]
        self.stages.setText(tr("Candidates left: ") + " → ".join(lefts))
        self.stages.setVisible(bool(lefts))
        for candidate in candidates(token):
            row = CandidateRow(candidate, self)
            row.clicked.connect(bound(self.rival_chosen.emit, place, candidate.source))
            self._box.insertWidget(self._box.count() - 1, row)
            self.rows.append(row)
