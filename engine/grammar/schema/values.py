"""A JSON Schema as a grammar: each goal (subschemas that must hold at one place) is one rule."""

from typing import Any

from engine.grammar.rules import Choice, Node
from engine.grammar.schema.arrays import array_node
from engine.grammar.schema.documents import Document
from engine.grammar.schema.objects import object_node
from engine.grammar.schema.scalars import (
    allows,
    number_node,
    number_options,
    string_node,
    string_options,
)
from engine.grammar.schema.terms import KINDS, Goal, Term
from engine.grammar.schema.unevaluated import SeenBranches
from engine.grammar.schema.writing import Writing, exactly

_PLAIN = {"null": "null", "true": "true", "false": "false"}


def schema_to_lark(schema: Any) -> str:
    """Return the Lark text of a JSON Schema (draft 2020-12) given as an object or its JSON.

    Raises GrammarError that names the keyword and its path for what cannot be honoured.
    """
    document = Document(schema)
    writer = _Values(SeenBranches(document))
    return writer.writing.lark(writer.value(frozenset({(document.root, True)})))


class _Values:
    """Writes the rules of goals; a goal that comes again is the same rule."""

    def __init__(self, branches: SeenBranches) -> None:
        self.branches, self.writing = branches, Writing()

    def value(self, goal: Goal) -> Node:
        """Return the node of the values that fulfil a goal."""
        goal = frozenset(literal for literal in goal if literal[0].value is not literal[1])
        return self.writing.rule(goal, lambda: self._write(goal))

    def _write(self, goal: Goal) -> Node:
        return Choice(tuple(self._node(kind, terms) for kind, terms in self._alternatives(goal)))

    def _alternatives(self, goal: Goal) -> list[tuple[str, tuple[Term, ...]]]:
        """Return each kind with its terms; a kind without terms stands for all of its kind."""
        found: dict[tuple[str, tuple[Term, ...]], None] = {}
        for branch in self.branches.of_goal(goal):
            for kind in sorted(branch.kinds, key=KINDS.index):
                found[(kind, branch.of(kind))] = None
        free = {kind for kind, terms in found if not terms}
        return [(kind, terms) for kind, terms in found if not terms or kind not in free]

    def _node(self, kind: str, terms: tuple[Term, ...]) -> Node:
        if kind == "number":
            return number_node(terms, self.writing)
        if kind == "string":
            return string_node(terms, self.writing)
        if kind == "array":
            return array_node(terms, self)
        if kind == "object":
            return object_node(terms, self)
        return exactly(_PLAIN[kind])

    def listed(self, goal: Goal) -> list[Node] | None:
        """Return the values that fulfil a goal, one node each; None if they cannot be listed."""
        found: list[Node] = []
        for kind, terms in self._alternatives(goal):
            if kind in ("array", "object"):
                return None
            if kind in ("number", "string"):
                options = number_options(terms) if kind == "number" else string_options(terms)
                if options is None:
                    return None
                found += [exactly(option) for option in options]
            else:
                found.append(self._node(kind, terms))
        return list(dict.fromkeys(found))

    def text_terms(self, goal: Goal) -> list[tuple[Term, ...]]:
        """Return the alternatives of terms under which a text fulfils a goal."""
        return [terms for kind, terms in self._alternatives(goal) if kind == "string"]

    def allows_text(self, goal: Goal, text: str) -> bool:
        """Whether a text fulfils a goal."""
        return any(allows(terms, text) for terms in self.text_terms(goal))
