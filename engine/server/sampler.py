"""Sampler: what a slot needs of whatever chooses its tokens."""

from collections.abc import Sequence
from typing import Any, Protocol


class Sampler(Protocol):
    """Chooses one token after the other for one answer."""

    @property
    def must_end(self) -> bool:
        """Return whether nothing may follow any more: what was asked for is complete."""

    @property
    def is_reasoning(self) -> bool:
        """Return whether the text stands inside a thought."""

    @property
    def stages(self) -> Sequence[Any]:
        """Return what each step did when the last token was chosen; empty unless asked for."""

    def forbids(self, token: int) -> bool:
        """Return whether a grammar forbade a token there; known while steps are asked for."""

    def apply(self, logits: Any) -> int:
        """Choose a token from one row of logits."""

    def accept(self, token: int) -> None:
        """Learn which token was taken."""

    def accept_all(self, tokens: Sequence[int]) -> None:
        """Learn the tokens of a prompt."""

    def update(self, **changes: Any) -> None:
        """Go on with other parameters; raises RequestError, nothing changed, if impossible."""

    def limit_reasoning(self, n_tokens: int) -> None:
        """Let the model think for so many tokens more, if it thinks; 0 ends it now."""
