"""Position automata of regular nodes: what can follow what, and where a match may end."""

from collections.abc import Iterator
from dataclasses import dataclass

from engine.grammar.rules import (
    Characters,
    Choice,
    Node,
    Range,
    Repeat,
    Sequence,
    empty,
    overlap,
)

MAX_POSITIONS = 400
MAX_TOGETHER = 5000  # pairs of positions of two automata


class TooManyPositions(Exception):
    """The node is too large to be looked at this closely."""


@dataclass
class Positions:
    """One position for each set of code points that is written in a node, repetitions unrolled.

    `sets[p]` is what position p reads; `first` where a match begins, `last` where it may end,
    `after[p]` what may come next.
    """

    sets: list[tuple[Range, ...]]
    first: set[int]
    last: set[int]
    after: list[set[int]]

    @classmethod
    def of(cls, node: Node) -> "Positions":
        """Return the automaton of a node without references and tokens.

        Raises TooManyPositions above MAX_POSITIONS.
        """
        made = cls([], set(), set(), [])
        made.first, made.last = made._add(node)
        return made

    def _add(self, node: Node) -> tuple[set[int], set[int]]:
        """Add the positions of a node; return where it begins and where it ends."""
        if isinstance(node, Characters):
            if len(self.sets) >= MAX_POSITIONS:
                raise TooManyPositions
            self.sets.append(node.ranges)
            self.after.append(set())
            here = len(self.sets) - 1
            return {here}, {here}
        if isinstance(node, Choice):
            pairs = [self._add(option) for option in node.options]
            return set().union(*(p[0] for p in pairs)), set().union(*(p[1] for p in pairs))
        if isinstance(node, Repeat):
            return self._add_repeat(node)
        return self._add_all(list(node.parts) if isinstance(node, Sequence) else [])

    def _add_repeat(self, node: Repeat) -> tuple[set[int], set[int]]:
        copies: list[Node] = [node.part] * node.least
        if node.most is not None:
            copies += [Choice((node.part, Sequence(())))] * (node.most - node.least)
            return self._add_all(copies)
        if not copies:
            first, last = self._add(node.part)
            self._link(last, first)
            return first, last
        first, last = self._add_all(copies[:-1])
        begin, end = self._add(node.part)
        self._link(end, begin)
        self._link(last, begin)
        all_empty = empty(node.part)
        return (
            first | begin if all_empty or len(copies) == 1 else first,
            end | last if all_empty else end,
        )

    def _add_all(self, parts: list[Node]) -> tuple[set[int], set[int]]:
        first, last, may_begin = set[int](), set[int](), True
        for part in parts:
            begin, end = self._add(part)
            self._link(last, begin)
            first |= begin if may_begin else set()
            last = end | (last if empty(part) else set())
            may_begin = may_begin and empty(part)
        return first, last

    def _link(self, froms: set[int], tos: set[int]) -> None:
        for position in froms:
            self.after[position] |= tos

    def reads(self, positions: set[int]) -> list[Range]:
        """Return the code points that any of the positions reads."""
        return [each for position in positions for each in self.sets[position]]


def runs_on(short: Positions, long: Positions, follow: list[Range]) -> bool:
    """Whether a match of `short`, then a code point of `follow`, also begins a match of `long`.

    Then a scanner that takes the longest match would miss the place where `short` ends.
    """
    return any(
        p in short.last and overlap(long.reads(long.after[q]), follow)
        for p, q in _together(short, long)
    )


def share_a_match(left: Positions, right: Positions) -> bool:
    """Whether some text matches both."""
    return any(p in left.last and q in right.last for p, q in _together(left, right))


def _together(left: Positions, right: Positions) -> Iterator[tuple[int, int]]:
    """Yield the pairs of positions that one text can lead to."""
    waiting = [
        (p, q) for p in left.first for q in right.first if overlap(left.sets[p], right.sets[q])
    ]
    seen = set(waiting)
    while waiting:
        p, q = waiting.pop()
        yield p, q
        for p_next in left.after[p]:
            for q_next in right.after[q]:
                pair = (p_next, q_next)
                if pair not in seen and overlap(left.sets[p_next], right.sets[q_next]):
                    if len(seen) > MAX_TOGETHER:
                        raise TooManyPositions
                    seen.add(pair)
                    waiting.append(pair)
