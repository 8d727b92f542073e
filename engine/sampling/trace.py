"""Tracer: what each sampler of a chain did to the likeliest tokens of one row, on demand."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.params import SamplingParams
from engine.sampling import words as w
from engine.sampling.program import Program, State
from engine.sampling.run import Candidates, Run
from engine.sampling.texts import Vocabulary


class Stage(NamedTuple):
    """One step of a chain: how many tokens it left, and the probability each has after it.

    `name` is the printed one ("top-k"), "logits" for the row before any sampler. `probs` holds
    token id → probability, 0.0 for a token that is cut.
    """

    name: str
    n_left: int
    probs: dict[int, float]


class Tracer:
    """Does the steps of a chain again, one more each time, on a copy of what the chain remembers.

    The chain itself never notices: random numbers come from the copy. One thread at a time.
    """

    def __init__(self, vocab: Vocabulary, n_recent: int, n_top: int) -> None:
        """`n_top` tokens of a row are followed, besides the one that is chosen."""
        self._vocab = vocab
        self._run = Run(vocab.n_tokens, n_recent)
        self._n_top = min(n_top, vocab.n_tokens)
        self.n_recent = self._run.n_recent

    def trace(
        self, params: SamplingParams, state: State, block: NDArray, logits: NDArray
    ) -> tuple[Stage, ...]:
        """Return the row f32 [n_vocab] and what is left after each step that does something.

        `state` is a copy of the chain's from before it chose, `block` the run block it chose with.
        """
        program = Program(params, self._vocab, state)
        generators, numbers = state.generators.copy(), state.numbers.copy()
        run, row = self._run, np.ravel(logits)
        run.block[w.RECENT] = block[w.RECENT]
        run.block[w.N_RECENT] = min(int(block[w.N_RECENT]), self.n_recent)
        followed = self._followed(row, int(block[w.TOKEN]))
        is_followed = np.zeros(len(row), bool)
        is_followed[followed] = True
        names = ["logits", *(name for name in program.names if not name.startswith("?"))]
        stages = []
        for n_steps, name in enumerate(names):
            state.generators[:], state.numbers[:] = generators, numbers
            run.use(program.steps[:n_steps])
            run.do(logits)
            is_last = n_steps == len(program.steps)
            stages.append(_stage(name, run.candidates(), is_followed, followed, is_last))
        return tuple(stages)

    def _followed(self, row: NDArray, chosen: int) -> list[int]:
        """Return the likeliest tokens of a row, the likeliest first, and the chosen one."""
        n = self._n_top
        top = np.argpartition(row, len(row) - n)[len(row) - n :] if n else np.zeros(0, np.int64)
        order = top[np.argsort(-row[top], kind="stable")].tolist()
        return order if chosen in order else [*order, chosen]


def _stage(
    name: str, left: Candidates, is_followed: NDArray, followed: Sequence[int], is_last: bool
) -> Stage:
    """Return the stage for what a prefix of the steps left; the selector's own numbers count."""
    probs = left.probs if is_last else _softmax(left.logits)
    places = np.flatnonzero(is_followed[left.ids])
    known = dict(zip(left.ids[places].tolist(), probs[places].tolist(), strict=True))
    n_left = int(np.count_nonzero(probs > 0))
    return Stage(name, n_left, {token: known.get(token, 0.0) for token in followed})


def _softmax(logits: NDArray) -> NDArray:
    """Return the probabilities of logits f32 [n], of which at least one is finite."""
    if not len(logits):
        return logits
    weights = np.exp(logits - logits.max())
    return weights / weights.sum(dtype=np.float64)
