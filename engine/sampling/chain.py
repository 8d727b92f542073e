"""SamplerChain: one row of logits in, one token out, and what it remembers in between."""

import os
from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray

from engine.params import RANDOM_SEED, SamplingParams
from engine.sampling import words as w
from engine.sampling.history import History
from engine.sampling.program import Program, State
from engine.sampling.run import Candidates, Run
from engine.sampling.texts import Vocabulary
from engine.sampling.trace import Stage, Tracer

MAX_REACH = 1 << 20  # the furthest a penalty looks back, in tokens
LEAST_REACH = 8192  # so that a penalty widened while an answer runs finds what was said


class SamplerChain:
    """The samplers of one answer, in order; not to be used by two threads at once.

    `seed` is the seed that is really used, also where the parameters ask for a random one.
    """

    def __init__(self, params: SamplingParams, vocab: Vocabulary) -> None:
        """Raises RequestError for an unknown sampler."""
        self._vocab = vocab
        self.params = params
        self._state = State(_real_seed(params.seed), 1)
        self._state.aim(params)
        self._history = History(LEAST_REACH)
        self._program = Program(params, vocab, self._state)
        self._run = self._make_run()
        self._tracer: Tracer | None = None
        self.stages: tuple[Stage, ...] = ()

    @property
    def seed(self) -> int:
        """The seed of the generators, 32 bits."""
        return self._state.seed

    def apply(self, logits: NDArray) -> int:
        """Choose a token from one row of logits, f32 [n_tokens], which is not changed.

        Draws random numbers but remembers nothing else: call `accept` with what was taken. Raises
        InternalError if a logit is NaN or +inf, RequestError if every token is forbidden.
        """
        block = self._run.block
        block[w.RECENT] = self._history.address_of_end
        block[w.N_RECENT] = min(len(self._history), self._run.n_recent)
        if self._tracer is None:
            return self._run.do(logits)
        before = self._state.copy()
        token = self._run.do(logits)
        self.stages = self._tracer.trace(self.params, before, self._run.block, logits)
        return token

    def trace(self, n_top: int) -> None:
        """From now on leave in `stages` what each step did to the n_top likeliest tokens.

        Costs about as much again as the chain for each of its steps; 0 switches it off.
        """
        self._tracer = Tracer(self._vocab, self._reach(), n_top) if n_top > 0 else None
        self.stages = ()

    def accept(self, token: int) -> None:
        """Remember a token that was taken, of the prompt or of the answer."""
        self._history.append(token)
        numbers = self._state.numbers
        if numbers[w.PICKED_P] >= 0:
            if token == self._run.block[w.TOKEN]:
                decay = self.params.adaptive_decay
                numbers[w.WEIGHTED] = numbers[w.PICKED_P] + decay * numbers[w.WEIGHTED]
                numbers[w.TOTAL] = 1 + decay * numbers[w.TOTAL]
            numbers[w.PICKED_P] = -1.0

    def accept_all(self, tokens: Iterable[int]) -> None:
        """Remember many tokens, the newest last: a prompt."""
        self._history.extend(tokens)
        self._state.numbers[w.PICKED_P] = -1.0

    def reset(self) -> None:
        """Forget all tokens and start the random numbers again from the same seed."""
        self._history.clear()
        self._state.restart(self.seed)
        self._state.aim(self.params)

    def clone(self) -> "SamplerChain":
        """Return an independent chain that goes on exactly as this one would."""
        other = object.__new__(SamplerChain)
        other._vocab, other.params = self._vocab, self.params
        other._state, other._history = self._state.copy(), self._history.copy()
        other._program = Program(self.params, self._vocab, other._state)
        other._run = other._make_run()
        other._run.block[w.TOKEN] = self._run.block[w.TOKEN]
        other._tracer, other.stages = None, self.stages
        return other

    def update(self, **changes: Any) -> None:
        """Change parameters from the next token on; tokens and random numbers go on.

        A changed seed starts the random numbers again. Raises RequestError for an unknown or
        impossible value, and then nothing has changed.
        """
        params = self.params.replace(**changes)
        self._program = Program(params, self._vocab, self._state)
        if params.seed != self.params.seed:
            self._state.restart(_real_seed(params.seed))
        self._aim_again(self.params, params)
        self.params = params
        self._history.reach_back(self._reach())
        if self._run.n_recent < self._reach():
            self._run = self._make_run()
        else:
            self._run.use(self._program.steps)

    def candidates(self) -> Candidates:
        """Return copies of what the last `apply` left: ids, logits and probabilities, [n] each."""
        return self._run.candidates()

    def __str__(self) -> str:
        return self._program.describe()

    def _reach(self) -> int:
        params = self.params
        looked_at = max(LEAST_REACH, params.repeat_last_n, params.dry_penalty_last_n)
        return min(looked_at, MAX_REACH)

    def _make_run(self) -> Run:
        self._history.reach_back(self._reach())
        run = Run(self._vocab.n_tokens, self._reach())
        run.use(self._program.steps)
        return run

    def _aim_again(self, old: SamplingParams, new: SamplingParams) -> None:
        """Start the running means again where what they aim for has changed."""
        means = "mirostat", "mirostat_tau", "adaptive_target", "adaptive_decay"
        if any(getattr(old, name) != getattr(new, name) for name in means):
            self._state.aim(new)


def _real_seed(seed: int) -> int:
    """Return the seed, or one from the system where a random one is asked for."""
    while seed == RANDOM_SEED:
        seed = int.from_bytes(os.urandom(4), "little")
    return seed
