"""ConstrainedSampler: a chain of samplers held to a grammar and to a reasoning budget."""

from collections.abc import Sequence
from typing import Any

from engine.grammar import LazyMatcher, Matcher, ReasoningBudget
from engine.grammar.reasoning import State
from engine.sampling.trace import Stage


class ConstrainedSampler:
    """Chooses tokens that a grammar allows; either constraint may be missing.

    The chain chooses first and is asked again, over what the grammar allows, where its choice does
    not fit; with `grammar_first` the grammar always goes first. A lazy grammar sleeps while the
    model reasons. With `after_reasoning` any grammar sleeps until the reasoning ends that the
    prompt has begun: what has a form is the answer, not the thought.
    """

    def __init__(
        self,
        chain: Any,
        matcher: Matcher | LazyMatcher | None = None,
        budget: ReasoningBudget | None = None,
        *,
        grammar_first: bool = False,
        after_reasoning: bool = False,
    ) -> None:
        self.chain = chain
        self.matcher = matcher
        self.budget = budget
        self._grammar_first = grammar_first
        self._is_lazy = isinstance(matcher, LazyMatcher)
        self._sleeps = self._is_lazy or (after_reasoning and self._is_reasoning())
        self._stages: Sequence[Any] = ()
        self._mask: Any = None  # of what the grammar allowed, while steps are followed
        self._asks_last = False  # the grammar only approved of what the chain chose

    @property
    def must_end(self) -> bool:
        """Return whether what the grammar asks for is complete and nothing may follow."""
        return self.matcher is not None and self.matcher.must_end

    @property
    def is_reasoning(self) -> bool:
        """Return whether the text stands inside a thought, as far as tags tell."""
        outside = State.IDLE, State.DONE
        return self.budget is not None and self.budget.state not in outside

    @property
    def stages(self) -> Sequence[Any]:
        """Return what each step did when a token was last chosen; empty unless asked for.

        Where a grammar was asked after the chain it is the last stage, “grammar”; where it went
        first, what it forbids has no probability from the beginning.
        """
        return self._stages

    def apply(self, logits: Any) -> int:
        """Choose a token from one row of logits f32 [n_vocab], which is not changed.

        Raises RequestError if budget, grammar and chain together leave no token.
        """
        token = self._choose(logits)
        self._stages = self.chain.stages
        is_followed = self._stages and self.matcher is not None and self._grammar_applies()
        self._mask = self.matcher.mask().copy() if is_followed and self.matcher else None
        if self._asks_last and self._stages and self.matcher is not None:
            self._stages = (*self._stages, _held_to(self._stages[-1], self.matcher, self.chain))
        return token

    def _choose(self, logits: Any) -> int:
        self._asks_last = False
        row = logits
        if self.budget is not None and self.budget.allowed() is not None:
            row = logits.copy()
            self.budget.apply(row)
        matcher = self.matcher
        if matcher is None or not self._grammar_applies():
            return self.chain.apply(row)
        if not self._grammar_first:
            token = self.chain.apply(row)
            if matcher.accepts(token):
                self._asks_last = True
                return token
        if row is logits:
            row = logits.copy()
        matcher.apply(row)
        return self.chain.apply(row)

    def forbids(self, token: int) -> bool:
        """Return whether the grammar forbade a token when one was last chosen, if it is known."""
        mask = self._mask
        if mask is None:
            return False
        return token >= 32 * len(mask) or not mask[token >> 5] >> (token & 31) & 1

    def accept(self, token: int) -> None:
        """Learn which token was taken."""
        applies = self._grammar_applies()
        if self.budget is not None:
            self.budget.accept(token)
            is_over = self.budget.state is State.DONE and not applies
            if is_over and isinstance(self.matcher, LazyMatcher):
                # The end of the reasoning may itself hold what wakes the grammar.
                for ended in self.budget.ended_with or ():
                    self.matcher.accept(ended)
        if applies and self.matcher is not None:
            self.matcher.accept(token)
        self.chain.accept(token)

    def accept_all(self, tokens: Sequence[int]) -> None:
        """Learn the tokens of a prompt; grammar and budget begin with the answer."""
        self.chain.accept_all(tokens)

    def update(self, **changes: Any) -> None:
        """Go on with other parameters; raises RequestError, nothing changed, if impossible."""
        self.chain.update(**changes)

    def limit_reasoning(self, n_tokens: int) -> None:
        """Let the model think for so many tokens more; below 0 for any, 0 ends it at the next."""
        if self.budget is not None:
            self.budget.limit(n_tokens)

    def candidates(self) -> Any:
        """Return what the chain left after the last `apply`."""
        return self.chain.candidates()

    def _grammar_applies(self) -> bool:
        return self.matcher is not None and not (self._sleeps and self._is_reasoning())

    def _is_reasoning(self) -> bool:
        return self.budget is not None and self.budget.state not in (State.IDLE, State.DONE)


def _held_to(last: Stage, matcher: Matcher | LazyMatcher, chain: Any) -> Stage:
    """Return a stage “grammar”: what the chain left, without what the grammar forbids."""
    left = chain.candidates()
    mask, ids = matcher.mask(), left.ids[left.probs > 0]
    ids = ids[ids < 32 * len(mask)]
    n_left = int(((mask[ids >> 5] >> (ids & 31)) & 1).sum())
    probs = {token: p if matcher.accepts(token) else 0.0 for token, p in last.probs.items()}
    return Stage("grammar", n_left, probs)
