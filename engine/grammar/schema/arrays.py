"""Arrays of a schema: items in order, and counting where `contains` or `uniqueItems` demand it."""

from dataclasses import dataclass
from typing import Protocol

from engine.grammar.json_text import SPACE
from engine.grammar.rules import EMPTY, Choice, Node, Repeat, Sequence
from engine.grammar.schema.terms import Contains, Goal, Item, Literal, Size, Term, Unique
from engine.grammar.schema.writing import NEVER, Writing, exactly

MAX_COUNT = 2000  # items that a schema may demand or allow by number
MAX_DIFFERENT = 8  # values out of which unique items may be chosen
_COMMA = exactly("," + SPACE)


class ItemWriter(Protocol):
    """What arrays need from whoever writes the values."""

    writing: Writing

    def value(self, goal: Goal) -> Node:
        """Return the node of the values that fulfil a goal."""

    def listed(self, goal: Goal) -> list[Node] | None:
        """Return the values that fulfil a goal, one node each; None if they cannot be listed."""


def array_node(terms: tuple[Term, ...], writer: ItemWriter) -> Node:
    """Return the JSON arrays that fulfil all terms."""
    return _Array(terms, writer).node()


@dataclass(frozen=True)
class _State:
    index: int  # items so far, up to where counting ends
    counts: tuple[int, ...]
    used: frozenset[Node]


class _Array:
    def __init__(self, terms: tuple[Term, ...], writer: ItemWriter) -> None:
        self.writer = writer
        self.items = [t for t in terms if isinstance(t, Item)]
        sizes = [t for t in terms if isinstance(t, Size)]
        self.least = max((t.least for t in sizes), default=0)
        self.most = min((t.most for t in sizes if t.most is not None), default=None)
        for size in sizes:
            if max(size.least, size.most or 0) > MAX_COUNT * 5:
                raise size.node.refuse("minItems / maxItems", f"counts beyond {MAX_COUNT * 5:,}")
        self.contains = [t for t in terms if isinstance(t, Contains)]
        self.unique = next((t for t in terms if isinstance(t, Unique)), None)
        if self.most is not None and self.most <= 1:
            self.unique = None
        starts = [t.index + (not t.and_later) for t in self.items] + [
            t.start for t in self.contains
        ]
        self.n_prefix = max(starts, default=0)

    def node(self) -> Node:
        counted = self.contains or self.unique
        inside = (
            self._counted(_State(0, (0,) * len(self.contains), frozenset()))
            if counted
            else (self._from(0))
        )
        return Sequence((exactly(r"\[" + SPACE), inside, exactly(SPACE + r"\]")))

    def _goal(self, index: int) -> frozenset[Literal]:
        return frozenset(
            t.literal for t in self.items if t.index == index or (t.and_later and t.index < index)
        )

    def _from(self, index: int) -> Node:
        """Return what may stand from an index on."""
        if index < self.n_prefix:
            return self.writer.writing.rule((self, index), lambda: self._prefix(index))
        return self._rest(index)

    def _prefix(self, index: int) -> Node:
        options = [EMPTY] if index >= self.least else []
        if self.most is None or index < self.most:
            comma = [_COMMA] if index else []
            options.append(
                Sequence((*comma, self.writer.value(self._goal(index)), self._from(index + 1)))
            )
        return Choice(tuple(options))

    def _rest(self, index: int) -> Node:
        item = self.writer.value(self._goal(self.n_prefix))
        least = max(0, self.least - index)
        most = None if self.most is None else self.most - index
        if most is not None and most < least:
            return NEVER
        more = Sequence((_COMMA, item))
        if index:
            return Repeat(more, least, most) if most != 0 else EMPTY
        if most == 0:
            return EMPTY
        some = Sequence((item, Repeat(more, max(0, least - 1), None if most is None else most - 1)))
        return some if least else Choice((EMPTY, some))

    def _counted(self, state: _State) -> Node:
        return self.writer.writing.rule((self, state), lambda: self._step(state))

    def _step(self, state: _State) -> Node:
        """Return what may stand after the items that a state has counted."""
        done = state.index >= self.least and all(
            n >= t.least for n, t in zip(state.counts, self.contains, strict=True)
        )
        options: list[Node] = [EMPTY] if done else []
        if self.most is None or state.index < self.most:
            comma = [_COMMA] if state.index else []
            for goal, counts in self._ways(state):
                for item, used in self._choices(goal, state.used):
                    after = _State(self._capped(state.index + 1), counts, used)
                    options.append(Sequence((*comma, item, self._counted(after))))
        return Choice(tuple(options))

    def _capped(self, index: int) -> int:
        return min(index, max(1, self.n_prefix, self.least, self.most or 0))

    def _ways(self, state: _State) -> list[tuple[frozenset[Literal], tuple[int, ...]]]:
        """Return the ways in which the next item can be counted by the `contains` terms."""
        ways: list[tuple[frozenset[Literal], tuple[int, ...]]] = [(self._goal(state.index), ())]
        for n, term in zip(state.counts, self.contains, strict=True):
            node, holds = term.literal
            self._refuse_counts(term)
            counts, skips = frozenset({(node, holds)}), frozenset({(node, not holds)})
            if state.index < term.start or (term.most is None and n >= term.least):
                ways = [(goal, (*c, n)) for goal, c in ways]
                continue
            more = [(goal | counts, (*c, n + 1)) for goal, c in ways]
            if term.most is None:
                skips = frozenset()
            elif n >= term.most:
                more = []
            ways = more + [(goal | skips, (*c, n)) for goal, c in ways]
        return ways

    def _refuse_counts(self, term: Contains) -> None:
        if max(term.least, term.most or 0) > MAX_COUNT:
            raise term.node.refuse("minContains / maxContains", f"counts beyond {MAX_COUNT:,}")

    def _choices(
        self, goal: frozenset[Literal], used: frozenset[Node]
    ) -> list[tuple[Node, frozenset[Node]]]:
        """Return the possible next items with the values that are used up after each."""
        if self.unique is None:
            return [(self.writer.value(goal), used)]
        values = self.writer.listed(goal)
        if values is None or len(values) > MAX_DIFFERENT:
            raise self.unique.node.refuse(
                "uniqueItems", f"needs items out of a list of at most {MAX_DIFFERENT} values"
            )
        return [(value, used | {value}) for value in values if value not in used]
