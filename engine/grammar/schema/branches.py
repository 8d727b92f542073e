"""A subschema as branches: all its keywords together, and the schemas it applies in place."""

import difflib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import Any

from engine.errors import GrammarError
from engine.grammar.schema.documents import Document, EitherNode, SchemaNode
from engine.grammar.schema.keywords import Keywords, mapping
from engine.grammar.schema.terms import ANYTHING, Branch, Goal, Present, both, only, when

MAX_BRANCHES = 400
MAX_STEPS = 20_000  # subschemas looked into while one schema is read
MAX_NESTED = 60  # schemas applied in place inside each other
_Keyword = Callable[[SchemaNode, Any, bool], list[Branch]]

NOTES = frozenset(
    "$schema $id $anchor $dynamicAnchor $comment $defs definitions title description default"
    " examples deprecated readOnly writeOnly contentEncoding contentMediaType contentSchema".split()
)
_WITH_ANOTHER = frozenset("then else minContains maxContains".split())
_OTHER_DIALECTS = {
    "nullable": 'add "null" to “type” instead',
    "dependencies": "use “dependentRequired” or “dependentSchemas”",
    "$recursiveRef": "use “$ref”",
    "$vocabulary": "the vocabulary of draft 2020-12 is always in force",
    "extends": "use “allOf”",
    "disallow": "use “not”",
    "divisibleBy": "use “multipleOf”",
}


class Branches(Keywords):
    """Reads subschemas of one document into branches, each once."""

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self._known: dict[tuple[SchemaNode, bool], list[Branch]] = {}
        self._open: list[tuple[SchemaNode, bool]] = []
        self.n_steps = 0

    def of_goal(self, goal: Goal) -> list[Branch]:
        """Return the branches in which all literals of a goal hold."""
        found = [ANYTHING]
        for node, holds in sorted(goal, key=lambda literal: (literal[0].path, literal[1])):
            found = self.join(node, found, self.both_ways(node, holds))
        return found

    def join(self, node: SchemaNode, left: list[Branch], right: list[Branch]) -> list[Branch]:
        """Return the branches where both hold; raises GrammarError when they are too many."""
        if len(left) * len(right) > MAX_BRANCHES * 20:
            raise self._too_many(node)
        found = both(left, right)
        if len(found) > MAX_BRANCHES:
            raise self._too_many(node)
        return found

    def both_ways(self, node: SchemaNode, holds: bool) -> list[Branch]:
        """Return the branches in which a subschema holds, or does not."""
        if isinstance(node.value, bool):
            return [ANYTHING] if node.value == holds else []
        if (node, holds) not in self._known:
            with self.inside(node, holds):
                self._known[(node, holds)] = self._read(node, holds)
        return self._known[(node, holds)]

    def _read(self, node: SchemaNode, holds: bool) -> list[Branch]:
        if isinstance(node, EitherNode):
            return self._some(node, list(node.parts), holds)
        return self._all(node) if holds else self._none(node)

    @contextmanager
    def inside(self, node: SchemaNode, holds: bool) -> Iterator[None]:
        """Guard against schemas that apply themselves and against too much work."""
        self.n_steps += 1
        if (node, holds) in self._open:
            raise GrammarError(f"The schema cannot be honoured: {node.path} refers to itself.")
        if self.n_steps > MAX_STEPS or len(self._open) > MAX_NESTED:
            raise GrammarError(f"The schema is too large to be honoured (at {node.path}).")
        self._open.append((node, holds))
        yield
        self._open.pop()

    def _too_many(self, node: SchemaNode) -> GrammarError:
        return GrammarError(
            f"The schema cannot be honoured: {node.path} combines more than {MAX_BRANCHES}"
            " alternatives; give fewer."
        )

    def _all(self, node: SchemaNode) -> list[Branch]:
        if {"unevaluatedProperties", "unevaluatedItems"} & node.value.keys():
            return self.unevaluated(node, True)
        found = [ANYTHING]
        for keyword, value in node.value.items():
            if read := self.reader(node, keyword):
                found = self.join(node, found, read(node, value, True))
        return found

    def _none(self, node: SchemaNode) -> list[Branch]:
        if {"unevaluatedProperties", "unevaluatedItems"} & node.value.keys():
            return self.unevaluated(node, False)
        found: dict[Branch, None] = {}
        for keyword, value in node.value.items():
            if read := self.reader(node, keyword):
                found |= dict.fromkeys(read(node, value, False))
        return list(found)

    def unevaluated(self, node: SchemaNode, holds: bool) -> list[Branch]:
        """Return the branches of a subschema with `unevaluatedProperties` or `…Items`."""
        raise NotImplementedError

    def reader(self, node: SchemaNode, keyword: str) -> _Keyword | None:
        """Return what reads a keyword, None for a note; raises GrammarError for others."""
        readers = self._readers()
        if keyword in readers:
            return readers[keyword]
        if keyword in NOTES or keyword in _WITH_ANOTHER or keyword.startswith("x-"):
            return None
        if keyword in _OTHER_DIALECTS:
            raise node.refuse(
                keyword, f"is no keyword of draft 2020-12; {_OTHER_DIALECTS[keyword]}"
            )
        close = difflib.get_close_matches(keyword, [*readers, *_WITH_ANOTHER], n=1, cutoff=0.85)
        if close:
            raise node.refuse(keyword, f"is no keyword; did you mean “{close[0]}”?")
        return None

    def _readers(self) -> dict[str, _Keyword]:
        return {
            "$ref": self.ref,
            "$dynamicRef": self.dynamic_ref,
            "allOf": self.all_of,
            "anyOf": self.any_of,
            "oneOf": self.one_of,
            "not": self.not_,
            "if": self.if_,
            "dependentSchemas": self.dependent_schemas,
            "type": self.type,
            "enum": self.enum,
            "const": self.const,
            "minimum": self.minimum,
            "maximum": self.maximum,
            "exclusiveMinimum": self.exclusive_minimum,
            "exclusiveMaximum": self.exclusive_maximum,
            "multipleOf": self.multiple_of,
            "pattern": self.pattern,
            "format": self.format,
            "minLength": self.min_length,
            "maxLength": self.max_length,
            "minItems": self.min_items,
            "maxItems": self.max_items,
            "uniqueItems": self.unique_items,
            "prefixItems": self.prefix_items,
            "items": self.items,
            "additionalItems": self.additional_items,
            "contains": self.contains,
            "minProperties": self.min_properties,
            "maxProperties": self.max_properties,
            "required": self.required,
            "dependentRequired": self.dependent_required,
            "properties": self.properties,
            "patternProperties": self.pattern_properties,
            "additionalProperties": self.additional_properties,
            "propertyNames": self.property_names,
        }

    def ref(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        return self.both_ways(self.document.target(node, "$ref"), holds)

    def dynamic_ref(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        return self.both_ways(self.document.target(node, "$dynamicRef"), holds)

    def listed(self, node: SchemaNode, keyword: str) -> list[SchemaNode]:
        """Return the subschemas listed under a keyword; raises GrammarError without any."""
        value = node.value[keyword]
        if not isinstance(value, list) or not value:
            raise node.refuse(keyword, "must be a list of schemas, and not empty")
        return [self.document.below(node, keyword, i) for i in range(len(value))]

    def all_of(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        return self._every(node, self.listed(node, "allOf"), holds)

    def any_of(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        return self._some(node, self.listed(node, "anyOf"), holds)

    def not_(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        return self.both_ways(self.document.below(node, "not"), not holds)

    def _every(self, node: SchemaNode, parts: list[SchemaNode], holds: bool) -> list[Branch]:
        if not holds:
            return [b for part in parts for b in self.both_ways(part, False)]
        found = [ANYTHING]
        for part in parts:
            found = self.join(node, found, self.both_ways(part, True))
        return found

    def _some(self, node: SchemaNode, parts: list[SchemaNode], holds: bool) -> list[Branch]:
        if holds:
            return list(dict.fromkeys(b for part in parts for b in self.both_ways(part, True)))
        found = [ANYTHING]
        for part in parts:
            found = self.join(node, found, self.both_ways(part, False))
        return found

    def one_of(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        parts = self.listed(node, "oneOf")
        overlaps = [pair for pair in combinations(parts, 2) if not self.apart(*pair)]
        if not overlaps:
            return self._some(node, parts, holds)
        found: list[Branch] = []
        for part in parts:
            alone = self.both_ways(part, True)
            for other in parts:
                if (part, other) in overlaps or (other, part) in overlaps:
                    alone = self.join(node, alone, self.both_ways(other, False))
            found += alone
        if holds:
            return list(dict.fromkeys(found))
        found = self._some(node, parts, False)
        for a, b in overlaps:
            found += self.join(node, self.both_ways(a, True), self.both_ways(b, True))
        return found

    def apart(self, left: SchemaNode, right: SchemaNode) -> bool:
        """Whether two subschemas plainly have no instance in common; False proves nothing."""
        return self.impossible(frozenset({(left, True), (right, True)}))

    def impossible(self, goal: Goal, depth: int = 3) -> bool:
        """Whether no instance can fulfil a goal, as far as `depth` levels of properties show."""
        return not any(
            self._possible(b, kind, depth) for b in self.of_goal(goal) for kind in b.kinds
        )

    def _possible(self, branch: Branch, kind: str, depth: int) -> bool:
        if kind != "object" or depth == 0:
            return True
        terms = branch.of("object")
        for term in terms:
            if isinstance(term, Present) and term.holds:
                about = [t for t in terms if getattr(t, "name", None) == term.name]
                goal = frozenset(t.literal for t in about if hasattr(t, "literal"))
                if len(goal) > 1 and self.impossible(goal, depth - 1):
                    return False
        return True

    def if_(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        condition = self.document.below(node, "if")
        if not {"then", "else"} & node.value.keys():
            return when() if holds else []
        found: list[Branch] = []
        for keyword, fulfilled in (("then", True), ("else", False)):
            branches = self.both_ways(condition, fulfilled)
            if keyword in node.value:
                then = self.both_ways(self.document.below(node, keyword), holds)
                found += self.join(node, branches, then)
            elif holds:
                found += branches
        return found

    def dependent_schemas(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        found = when() if holds else []
        for key in mapping(node, "dependentSchemas", value):
            part = self.both_ways(self.document.below(node, "dependentSchemas", key), holds)
            with_key = self.join(node, only(Present(key, True)), part)
            if holds:
                without = when(Present(key, False))
                found = self.join(node, found, without + with_key)
            else:
                found = found + with_key
        return found
