"""What a pane counts: tokens of the draft, what is left of the context, and the ring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

from app.chats.conversation import Message
from app.strings import count, tr

if TYPE_CHECKING:
    from app.services.engine_service import EngineService
    from app.ui.widgets.composer import Composer
    from app.ui.widgets.controls import ContextRing

_EXACT_CHARACTERS = 20_000  # longer drafts are counted by estimate while typing


class PaneFigures(QObject):
    """Keeps the line under the draft and the ring in the head right, also while an answer grows."""

    def __init__(
        self, engine: EngineService, composer: Composer, ring: ContextRing, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._composer = composer
        self._ring = ring
        self._n_used = 0
        self._n_live = 0
        self._n_draft: int | None = 0
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(150)
        self._later.timeout.connect(self.count_draft)
        composer.text_changed.connect(self._later.start)

    def set_branch(self, messages: Sequence[Message]) -> None:
        """Take over what the branch on show took of the context."""
        self._n_used, self._n_live = tokens_used(messages), 0

    def set_prompt(self, n_prompt: int) -> None:
        """Take over how long the prompt of the running answer is."""
        self._n_used, self._n_live = n_prompt, 0
        self.show()

    def set_live(self, n_tokens: int) -> None:
        """Take over how much of the running answer is written."""
        self._n_live = n_tokens
        self.show()

    def count_draft(self) -> None:
        """Count the draft with the model's own tokens, and show the figures."""
        text = self._composer.text()
        self._n_draft = self._engine.n_tokens(text) if len(text) <= _EXACT_CHARACTERS else None
        self.show()

    def show(self) -> None:
        """Show the figures; costs nothing much, so it may be called for every frame."""
        n_ctx, n_used = self._engine.n_ctx, self._n_used + self._n_live
        is_exact = self._n_draft is not None
        n_draft = self._n_draft if is_exact else len(self._composer.text()) // 4
        line = tr("{n} tokens", n=count(n_draft or 0)) if n_draft else ""
        line = line if is_exact else f"≈ {line}"
        if n_ctx:
            left = tr("{n} left", n=count(max(0, n_ctx - n_used - (n_draft or 0))))
            line = f"{line} · {left}" if line else left
            words = tr("{n} of {all} tokens of context", n=count(n_used), all=count(n_ctx))
            self._ring.set_usage(n_used / n_ctx, words)
        self._ring.setVisible(bool(n_ctx))
        self._composer.set_figures(line)


def tokens_used(messages: Sequence[Message]) -> int:
    """Return the tokens that a branch took when it was last read and written."""
    for message in reversed(messages):
        timings = message.record.get("timings")
        if timings:
            whole = timings["n_prompt"] + timings["n_generated"]
            return int(message.record.get("n_used", whole))
    return 0
