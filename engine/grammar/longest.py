"""The proof that longest match splits a text where the grammar does."""

from collections import defaultdict

from engine.grammar.positions import Positions, TooManyPositions, runs_on, share_a_match
from engine.grammar.rules import (
    Characters,
    Choice,
    Node,
    OneToken,
    Range,
    Reference,
    Repeat,
    Rules,
    Sequence,
    children,
    empty,
)

MAX_PAIRS = 2000  # pairs of terminals to compare
MAX_STEPS = 100_000  # nodes looked at until nothing grows


class Unproven(Exception):
    """The grammar is too large for the proof."""


def clashes(bodies: dict[str, Node], long: list[Node]) -> set[Node]:
    """Return terminals of `long` that may run on over what follows another terminal.

    `bodies` are rules whose root is `root`; code points outside `long` are terminals of their
    own. Raises Unproven when that would take too long.
    """
    try:
        return _Proof(bodies, long).clashes()
    except TooManyPositions as error:
        raise Unproven from error


class _Proof:
    """Which terminals may come after which, which may be expected together, and what follows."""

    def __init__(self, bodies: dict[str, Node], long: list[Node]) -> None:
        self.bodies, self.long = bodies, set(long)
        self.nullable = Rules(bodies).nullable
        self.first: dict[str, set[Node]] = {name: set() for name in bodies}
        self.after_rule: dict[str, set[Node]] = {name: set() for name in bodies}
        self.after: dict[Node, set[Node]] = defaultdict(set)
        self.automata: dict[Node, Positions] = {}
        self.n_steps = 0

    def clashes(self) -> set[Node]:
        self._find_first()
        self._find_after()
        found = set()
        for node, other in self._expected_together():
            if other in self.long and other not in found:
                follow = [r for n in self.after[node] for r in self._begins(n)]
                if runs_on(self._automaton(node), self._automaton(other), follow):
                    found.add(other)
        return found

    def _automaton(self, node: Node) -> Positions:
        if node not in self.automata:
            self.automata[node] = Positions.of(node)
        return self.automata[node]

    def _begins(self, node: Node) -> list[Range]:
        if isinstance(node, OneToken):  # read by its id, not by its text
            return []
        automaton = self._automaton(node)
        return automaton.reads(automaton.first)

    def _expected_together(self) -> list[tuple[Node, Node]]:
        """Return the pairs of terminals that may be expected at one place, both ways round."""
        begin = self.first["root"]
        seen = {(a, b) for a in begin for b in begin}
        waiting = list(seen)
        while waiting:
            a, b = waiting.pop()
            if len(seen) > MAX_PAIRS:
                raise Unproven
            if a == b or self._share(a, b):
                more = {(c, d) for c in self.after[a] for d in self.after[b]} - seen
                seen |= more
                waiting.extend(more)
        return [pair for pair in seen if not any(isinstance(n, OneToken) for n in pair)]

    def _share(self, a: Node, b: Node) -> bool:
        if isinstance(a, OneToken) or isinstance(b, OneToken):
            return True
        return share_a_match(self._automaton(a), self._automaton(b))

    def _is_terminal(self, node: Node) -> bool:
        self.n_steps += 1
        if self.n_steps > MAX_STEPS:
            raise Unproven
        return node in self.long or isinstance(node, Characters | OneToken)

    def _find_first(self) -> None:
        size = -1
        while size != (size := sum(map(len, self.first.values()))):
            for name, body in self.bodies.items():
                self.first[name] |= self._first(body)

    def _first(self, node: Node) -> set[Node]:
        if self._is_terminal(node):
            return {node}
        if isinstance(node, Reference):
            return self.first[node.name]
        found: set[Node] = set()
        for part in children(node):
            found |= self._first(part)
            if isinstance(node, Sequence) and not empty(part, self.nullable):
                break
        return found

    def _find_after(self) -> None:
        size = -1
        while size != (
            size := sum(map(len, self.after.values())) + sum(map(len, self.after_rule.values()))
        ):
            for name, body in self.bodies.items():
                self._visit(body, set(self.after_rule[name]))

    def _visit(self, node: Node, follow: set[Node]) -> None:
        """Record what may come after each terminal and rule inside a node."""
        if self._is_terminal(node):
            self.after[node] |= follow
        elif isinstance(node, Reference):
            self.after_rule[node.name] |= follow
        elif isinstance(node, Choice):
            for option in node.options:
                self._visit(option, follow)
        elif isinstance(node, Repeat):
            again = self._first(node.part) if node.most is None or node.most > 1 else set()
            self._visit(node.part, follow | again)
        elif isinstance(node, Sequence):
            for part in reversed(node.parts):
                self._visit(part, follow)
                follow = self._first(part) | (follow if empty(part, self.nullable) else set())
