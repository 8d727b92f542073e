"""The Tokens tab: an answer token by token, and what every stage did to the candidates of one."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.services.token_log import candidates
from app.strings import tr
from app.ui.bound import bound
from app.ui.theme import theme
from app.ui.widgets.candidate_row import CandidateRow
from app.ui.widgets.controls import button, label
from app.ui.widgets.stage_chips import StageChips
from app.ui.widgets.token_text import TokenText


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
        self.stages = StageChips(self)
        self.stages.picked.connect(self._show_stage)
        words = tr("Bars: grey before, coloured after. Click a candidate to go on from it.")
        self.legend = label(words, "secondary", self)
        self.legend.setWordWrap(True)
        self.rows: list[CandidateRow] = []
        self._tokens: Sequence[Any] = ()
        self._box = QVBoxLayout(self)
        self._box.setContentsMargins(theme.px(16), theme.px(12), theme.px(14), theme.px(16))
        self._box.setSpacing(theme.px(7))
        for part in (self.note, self.replay, self.text, self.title, self.stages, self.legend):
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
        for part in (self.title, self.stages, self.legend):
            part.hide()

    def _show_candidates(self, place: int) -> None:
        self._clear()
        token = self._tokens[place]
        self.title.show()
        self.legend.show()
        self.stages.show_stages(token.stages)
        self.stages.setVisible(bool(token.stages))
        for candidate in candidates(token):
            row = CandidateRow(candidate, self)
            row.clicked.connect(bound(self.rival_chosen.emit, place, candidate.source))
            self._box.insertWidget(self._box.count() - 1, row)
            self.rows.append(row)
        self._show_stage(self.stages.place)

    def _show_stage(self, place: int) -> None:
        for row in self.rows:
            row.show_stage(place)
