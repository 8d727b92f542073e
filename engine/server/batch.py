"""What goes through the model in one step: a part of each slot, split where a decode must be."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.server.slot import Slot


@dataclass(frozen=True)
class Part:
    """Consecutive tokens of one slot from position `start` on; the last may want logits."""

    slot: Slot
    tokens: Sequence[int]
    start: int
    wants_logits: bool

    def split(self, n_tokens: int) -> tuple["Part", "Part"]:
        """Return the first `n_tokens` and the others."""
        first = Part(self.slot, self.tokens[:n_tokens], self.start, False)
        rest = self.tokens[n_tokens:]
        return first, Part(self.slot, rest, self.start + n_tokens, self.wants_logits)


class Batch:
    """Parts in order, as the arrays that `Context.decode` takes."""

    def __init__(self, parts: Sequence[Part] = ()) -> None:
        self.parts = list(parts)

    @property
    def n_tokens(self) -> int:
        """Return the tokens of all parts."""
        return sum(len(part.tokens) for part in self.parts)

    @property
    def slots(self) -> list[Slot]:
        """Return the slots that have a part, each once."""
        return list(dict.fromkeys(part.slot for part in self.parts))

    def of(self, slot: Slot) -> "Batch":
        """Return the parts of one slot."""
        return Batch([part for part in self.parts if part.slot is slot])

    def take(self, n_tokens: int) -> tuple["Batch", "Batch"]:
        """Return a batch of the first `n_tokens` tokens and one of the others."""
        head: list[Part] = []
        for i, part in enumerate(self.parts):
            if len(part.tokens) > n_tokens:
                cut = list(part.split(n_tokens)) if n_tokens else [part]
                return Batch(head + cut[:-1]), Batch(cut[-1:] + self.parts[i + 1 :])
            head.append(part)
            n_tokens -= len(part.tokens)
        return Batch(head), Batch()

    def arrays(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Return token ids, positions and sequence ids by row, and the rows whose logits count."""
        tokens: list[int] = []
        positions: list[int] = []
        seq_ids: list[int] = []
        rows: list[int] = []
        for part in self.parts:
            n = len(part.tokens)
            tokens.extend(part.tokens)
            positions.extend(range(part.start, part.start + n))
            seq_ids.extend([part.slot.id] * n)
            if part.wants_logits:
                rows.append(len(tokens) - 1)
        return tokens, positions, seq_ids, rows
