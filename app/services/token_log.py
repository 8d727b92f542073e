"""TokenLog: how the tokens of recent answers were chosen, kept while someone looks at them."""

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import QObject, Signal

N_ANSWERS = 6
MAX_TOKENS = 4096  # of one answer; later ones are written but not looked into
N_CANDIDATES = 10


@dataclass
class LoggedAnswer:
    """The tokens of one answer (TokenProb each), behind `before`, text nobody looked into."""

    before: str = ""
    tokens: list[Any] = field(default_factory=list)

    def text_until(self, at: int) -> str:
        """Return the answer up to the token at a place, without it."""
        return self.before + joined(self.tokens[:at])


class TokenLog(QObject):
    """What the engine tells of each token while `is_wanted`: the last answers, in memory only.

    Signals:
        changed(int): more is known of this message.
    """

    changed = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.is_wanted = False
        self._answers: OrderedDict[int, LoggedAnswer] = OrderedDict()

    def options(self) -> dict[str, Any]:
        """Return what a request must ask for, nothing while nobody looks."""
        return {"n_probs": N_CANDIDATES, "trace": True} if self.is_wanted else {}

    def begin(self, message_id: int, text: str) -> None:
        """An answer starts or goes on with the text it has."""
        known = self._answers.get(message_id)
        if known is None or known.text_until(len(known.tokens)) != text:
            self._keep(message_id, LoggedAnswer(text))

    def take(self, message_id: int, probs: Sequence[Any]) -> None:
        """Keep tokens that have come."""
        known = self._answers.get(message_id)
        if known is None or not probs:
            return
        room = MAX_TOKENS - len(known.tokens)
        known.tokens.extend(probs[:room])
        self.changed.emit(message_id)

    def of(self, message_id: int) -> LoggedAnswer | None:
        """Return what is known of an answer, or None."""
        return self._answers.get(message_id)

    def branch(self, message_id: int, at: int, rival: Any, other_id: int) -> None:
        """Let another answer begin with the tokens up to a place, and a rival there."""
        known = self._answers[message_id]
        chosen = known.tokens[at]
        stages, top = chosen.stages, chosen.top
        taken = type(chosen)(rival.token, rival.piece, rival.logprob, top, stages, rival.is_end)
        self._keep(other_id, LoggedAnswer(known.before, [*known.tokens[:at], taken]))

    def _keep(self, message_id: int, answer: LoggedAnswer) -> None:
        self._answers[message_id] = answer
        self._answers.move_to_end(message_id)
        while len(self._answers) > N_ANSWERS:
            self._answers.popitem(last=False)
        self.changed.emit(message_id)


@dataclass(frozen=True)
class Candidate:
    """One row of the view: a rival or the chosen token, before and after the chain.

    `cut_by` is the printed name of the sampler that took it out, "grammar" where what limits the
    answer did, "" for one that stayed to the end. `steps` are (stage, probability) on the way.
    """

    source: Any
    text: str
    before: float
    after: float
    cut_by: str
    is_chosen: bool
    steps: tuple[tuple[str, float], ...] = ()


def candidates(token: Any) -> list[Candidate]:
    """Return the chosen token and its rivals, the likeliest first."""
    known = {rival.token: rival for rival in token.top}
    known.setdefault(token.token, token)
    rows = [_candidate(rival, token) for rival in known.values()]
    return sorted(rows, key=lambda row: -row.before)


def _candidate(rival: Any, token: Any) -> Candidate:
    before = math.exp(rival.logprob)
    steps = tuple((s.name, s.probs[rival.token]) for s in token.stages if rival.token in s.probs)
    if rival.is_forbidden or (token.stages and not steps):
        cut_by, after = "grammar", 0.0
    else:
        cut_by = next((name for name, p in steps if p <= 0), "")
        cut_by = "grammar" if cut_by == "logits" else cut_by
        after = steps[-1][1] if steps else before
    is_chosen = rival.token == token.token
    return Candidate(rival, shown(rival.piece), before, after, cut_by, is_chosen, steps)


def joined(tokens: Sequence[Any]) -> str:
    """Return the text of tokens; ends and an unfinished character at the end are left out."""
    pieces = (token.piece for token in tokens if not token.is_end)
    return b"".join(pieces).decode("utf-8", "ignore")


def shown(piece: bytes) -> str:
    """Return a token as a person can see it, blanks and bytes of half characters included."""
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        return " ".join(f"{byte:02X}" for byte in piece)
    return text.replace("\n", "↵").replace("\t", "⇥") or "∅"
