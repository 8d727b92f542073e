"""Objects of a schema: named properties in their order, then others.

Decision: named properties are written in the order of the schema and before all others, as models
write best what they can foresee; a value in another order is not accepted. Keys outside the names
are not remembered, so the same one may come twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Protocol

from engine.grammar.json_text import SPACE, spelt, spelt_text
from engine.grammar.pattern import read_pattern
from engine.grammar.rules import EMPTY, Choice, Node, Repeat, Sequence
from engine.grammar.schema.scalars import key_node, string_node
from engine.grammar.schema.terms import (
    Goal,
    Keys,
    Literal,
    Names,
    Present,
    Property,
    Size,
    Term,
    Texts,
    Values,
)
from engine.grammar.schema.writing import Writing, exactly
from engine.grammar.texts import matches

MAX_COUNT = 1000  # properties that a schema may demand or allow by number
MAX_PATTERNS = 4  # patterns for keys of one object
_COMMA, _COLON = exactly("," + SPACE), exactly(":" + SPACE)


class ValueWriter(Protocol):
    """What objects need from whoever writes the values."""

    writing: Writing

    def value(self, goal: Goal) -> Node:
        """Return the node of the values that fulfil a goal."""

    def text_terms(self, goal: Goal) -> list[tuple[Term, ...]]:
        """Return the alternatives of terms under which a text fulfils a goal."""

    def allows_text(self, goal: Goal, text: str) -> bool:
        """Whether a text fulfils a goal."""


def object_node(terms: tuple[Term, ...], writer: ValueWriter) -> Node:
    """Return the JSON objects that fulfil all terms."""
    return _Object(terms, writer).node()


@dataclass(frozen=True)
class _State:
    index: int  # named properties that were passed
    count: int  # properties so far, up to where counting ends
    owed: frozenset[Values | Names]  # "some key …" terms that are not fulfilled yet


class _Object:
    def __init__(self, terms: tuple[Term, ...], writer: ValueWriter) -> None:
        self.writer = writer
        present = [t for t in terms if isinstance(t, Present)]
        self.required = {t.name for t in present if t.holds}
        self.forbidden = {t.name for t in present if not t.holds}
        self.properties: dict[str, set[Literal]] = {}
        for term in terms:
            if isinstance(term, Property):
                self.properties.setdefault(term.name, set()).add(term.literal)
        keys = [t.keys for t in terms if isinstance(t, Values)]
        covered = sorted({name for each in keys for name in each.names})
        names = [*self.properties, *(t.name for t in present), *covered]
        self.names = list(dict.fromkeys(names))
        self.values = [t for t in terms if isinstance(t, Values) and t.every]
        self.key_goals = frozenset(t.literal for t in terms if isinstance(t, Names) and t.every)
        self.some = [t for t in terms if isinstance(t, Values | Names) and not t.every]
        sizes = [t for t in terms if isinstance(t, Size)]
        self.least = max((t.least for t in sizes), default=0)
        self.most = min((t.most for t in sizes if t.most is not None), default=None)
        for size in sizes:
            if max(size.least, size.most or 0) > MAX_COUNT:
                raise size.node.refuse(
                    "minProperties / maxProperties", f"counts beyond {MAX_COUNT:,}"
                )
        self._known_cells: dict[tuple[Values | Names, ...], list[tuple[Node, Goal]]] = {}
        self.patterns = {p: read_pattern(p) for p in self._pattern_texts()}

    def _pattern_texts(self) -> list[str]:
        keys = [t.keys for t in [*self.values, *self.some] if isinstance(t, Values)]
        texts = {k.pattern for k in keys} | {p for k in keys for p in k.others}
        return sorted(text for text in texts if text is not None)

    def node(self) -> Node:
        inside = self._from(_State(0, 0, frozenset(self.some)))
        return Sequence((exactly(r"\{" + SPACE), inside, exactly(SPACE + r"\}")))

    def _from(self, state: _State) -> Node:
        return self.writer.writing.rule((self, state), lambda: self._step(state))

    def _counted(self, count: int) -> int:
        return min(count, max(1, self.least, self.most or 0))

    def _step(self, state: _State) -> Node:
        """Return what may stand after the properties that a state has passed."""
        if state.index == len(self.names):
            return self._others(state)
        name = self.names[state.index]
        options: list[Node] = []
        if name not in self.required:
            options.append(self._from(_State(state.index + 1, state.count, state.owed)))
        if name not in self.forbidden and self._has_room(state) and self._may_be_named(name):
            key = exactly(spelt_text(name))
            for extra, owed in self._paid(state.owed, lambda term: self._speaks_of(term, name)):
                goal = self._goal_of(name) | {t.literal for t in extra if isinstance(t, Values)}
                if any(not self._fulfils_name(t, name) for t in extra):
                    continue
                after = _State(state.index + 1, self._counted(state.count + 1), owed)
                options.append(self._entry(state, key, goal, self._from(after)))
        return Choice(tuple(options))

    def _entry(self, state: _State, key: Node, goal: Goal, rest: Node) -> Node:
        comma = [_COMMA] if state.count else []
        return Sequence((*comma, key, _COLON, self.writer.value(goal), rest))

    def _has_room(self, state: _State) -> bool:
        return self.most is None or state.count < self.most

    def _may_be_named(self, name: str) -> bool:
        return not self.key_goals or self.writer.allows_text(self.key_goals, name)

    def _goal_of(self, name: str) -> frozenset[Literal]:
        own = self.properties.get(name, set())
        return frozenset(own | {t.literal for t in self.values if self._covers(t.keys, name)})

    def _covers(self, keys: Keys, name: str) -> bool:
        if keys.pattern is not None and not matches(self.patterns[keys.pattern], name):
            return False
        return name not in keys.names and not any(
            matches(self.patterns[p], name) for p in keys.others
        )

    def _speaks_of(self, term: Values | Names, name: str) -> bool:
        return isinstance(term, Names) or self._covers(term.keys, name)

    def _fulfils_name(self, term: Values | Names, name: str) -> bool:
        return isinstance(term, Values) or self.writer.allows_text(frozenset({term.literal}), name)

    def _paid(self, owed: frozenset, applies) -> Iterator[tuple[tuple, frozenset]]:  # noqa: ANN001
        """Yield which of the owed terms the next property fulfils, and what is owed after it."""
        able = [term for term in owed if applies(term)]
        for chosen in product((False, True), repeat=len(able)):
            paid = tuple(term for term, yes in zip(able, chosen, strict=True) if yes)
            yield paid, owed - frozenset(paid)

    def _others(self, state: _State) -> Node:
        """Return what may stand after all named properties."""
        free = state.count >= self.least and self.most is None and not state.owed
        if free and state.count:
            others = tuple(
                Sequence((_COMMA, key, _COLON, self.writer.value(goal)))
                for key, goal in self._cells(())
            )
            return Repeat(Choice(others), 0, None)
        done = state.count >= self.least and not state.owed
        options: list[Node] = [EMPTY] if done else []
        if self._has_room(state):
            for paid, owed in self._paid(state.owed, lambda term: True):
                after = self._from(_State(state.index, self._counted(state.count + 1), owed))
                options += [self._entry(state, k, g, after) for k, g in self._cells(paid)]
        return Choice(tuple(options))

    def _cells(self, paid: tuple[Values | Names, ...]) -> list[tuple[Node, Goal]]:
        """Return the sorts of other keys: those that the same patterns match, with their goal."""
        if paid not in self._known_cells:
            self._known_cells[paid] = self._make_cells(paid)
        return self._known_cells[paid]

    def _make_cells(self, paid: tuple[Values | Names, ...]) -> list[tuple[Node, Goal]]:
        if len(self.patterns) > MAX_PATTERNS:
            raise self.values[0].node.refuse(
                "patternProperties", f"combines more than {MAX_PATTERNS} patterns"
            )
        cells = []
        for hits in product((True, False), repeat=len(self.patterns)):
            matched = {p for p, hit in zip(self.patterns, hits, strict=True) if hit}
            terms = [t for t in paid if isinstance(t, Values)]
            if not all(_in_cell(t.keys, matched) for t in terms):
                continue
            goal = {t.literal for t in self.values if _in_cell(t.keys, matched)}
            goal |= {t.literal for t in terms}
            names = {t.literal for t in paid if isinstance(t, Names)} | self.key_goals
            if not _never(goal):
                cells += [
                    (key, frozenset(goal)) for key in self._key_nodes(matched, frozenset(names))
                ]
        return cells

    def _key_nodes(self, matched: set[str], names: Goal) -> list[Node]:
        if not self.names and not self.patterns and not names:
            return [string_node((), self.writer.writing)]
        parts = [
            f"{'' if pattern in matched else '~'}/{spelt(node)}/"
            for pattern, node in self.patterns.items()
        ]
        taken: list[Term] = [Texts(tuple(self.names), False)] if self.names else []
        alternatives = self.writer.text_terms(names) if names else [()]
        writing = self.writer.writing
        return [key_node([*terms, *taken], parts, writing) for terms in alternatives]


def _in_cell(keys: Keys, matched: set[str]) -> bool:
    """Whether keys that have no name of their own and match just `matched` are meant."""
    if keys.pattern is not None and keys.pattern not in matched:
        return False
    return not keys.others & matched


def _never(goal: set[Literal]) -> bool:
    return any(node.value is (not holds) for node, holds in goal)
