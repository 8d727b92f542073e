"""`unevaluatedProperties` and `unevaluatedItems`: what the other keywords have looked at."""

from dataclasses import dataclass
from typing import Any

from engine.grammar.schema.branches import Branches
from engine.grammar.schema.documents import SchemaNode
from engine.grammar.schema.keywords import mapping
from engine.grammar.schema.terms import (
    ANYTHING,
    Branch,
    Contains,
    Item,
    Keys,
    Present,
    Values,
    only,
    when,
)

_OWN = ("unevaluatedProperties", "unevaluatedItems")


@dataclass(frozen=True)
class Seen:
    """The properties and items that schemas which hold have looked at."""

    names: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    all_properties: bool = False
    n_items: int = 0
    all_items: bool = False
    matching: frozenset[SchemaNode] = frozenset()  # items that `contains` matches

    def with_(self, other: "Seen") -> "Seen":
        """Return what either has looked at."""
        return Seen(
            self.names | other.names,
            self.patterns | other.patterns,
            self.all_properties or other.all_properties,
            max(self.n_items, other.n_items),
            self.all_items or other.all_items,
            self.matching | other.matching,
        )


_Cases = list[tuple[Branch, Seen]]
_NOTHING = Seen()


class SeenBranches(Branches):
    """Branches that also know, where it matters, what has been looked at in each."""

    def unevaluated(self, node: SchemaNode, holds: bool) -> list[Branch]:
        """Return the branches of a subschema with `unevaluatedProperties` or `…Items`."""
        cases = self._others(node)
        found: list[Branch] = []
        for branch, seen in cases:
            terms = self._rest(node, seen, holds)
            if holds:
                found += self.join(node, [branch], when(*terms))
            else:
                found += [b for t in terms for b in self.join(node, [branch], only(t))]
        if not holds:
            for keyword, value in node.value.items():
                read = None if keyword in _OWN else self.reader(node, keyword)
                found += read(node, value, False) if read else []
        return list(dict.fromkeys(found))

    def _rest(self, node: SchemaNode, seen: Seen, holds: bool) -> list[Any]:
        """Return the terms for what has not been looked at."""
        terms: list[Any] = []
        if "unevaluatedProperties" in node.value and not seen.all_properties:
            literal = (self.document.below(node, "unevaluatedProperties"), holds)
            terms.append(Values(Keys(None, seen.names, seen.patterns), literal, holds, node))
        if "unevaluatedItems" in node.value and not seen.all_items:
            part = self.document.below(node, "unevaluatedItems")
            if seen.matching:
                others = sorted(seen.matching, key=lambda each: each.path)
                part = self.document.either(part, *others)
            if holds:
                terms.append(Item(seen.n_items, True, (part, True)))
            else:
                terms.append(Contains(seen.n_items, (part, False), 1, None, node))
        return terms

    def _cases(self, node: SchemaNode) -> _Cases:
        """Return the branches in which a subschema holds, each with what it has looked at."""
        if isinstance(node.value, bool):
            return [(ANYTHING, _NOTHING)] if node.value else []
        with self.inside(node, True):
            cases = self._others(node)
            if not set(_OWN) & node.value.keys():
                return cases
            return [
                (b, seen.with_(self._own(node)))
                for branch, seen in cases
                for b in self.join(node, [branch], when(*self._rest(node, seen, True)))
            ]

    def _own(self, node: SchemaNode) -> Seen:
        return Seen(
            all_properties="unevaluatedProperties" in node.value,
            all_items="unevaluatedItems" in node.value,
        )

    def _others(self, node: SchemaNode) -> _Cases:
        """Return the cases of a subschema without its own `unevaluated…` keywords."""
        cases: _Cases = [(ANYTHING, _NOTHING)]
        for keyword, value in node.value.items():
            if keyword in _OWN:
                continue
            if read := self.reader(node, keyword):
                special = self._special(node, keyword)
                if special is None:
                    branches = read(node, value, True)
                    seen = self._looked_at(node, keyword)
                    special = [(branch, seen) for branch in branches]
                cases = self._product(node, cases, special)
        return cases

    def _product(self, node: SchemaNode, left: _Cases, right: _Cases) -> _Cases:
        if len(left) * len(right) > 4000:
            raise self._too_many(node)
        found: dict[tuple[Branch, Seen], None] = {}
        for a, seen_a in left:
            for b, seen_b in right:
                for branch in self.join(node, [a], [b]):
                    found[(branch, seen_a.with_(seen_b))] = None
        return list(found)

    def _special(self, node: SchemaNode, keyword: str) -> _Cases | None:
        """Return the cases of a keyword that applies schemas in place; None for others."""
        if keyword in ("$ref", "$dynamicRef"):
            return self._cases(self.document.target(node, keyword))
        if keyword == "allOf":
            cases: _Cases = [(ANYTHING, _NOTHING)]
            for part in self.listed(node, keyword):
                cases = self._product(node, cases, self._cases(part))
            return cases
        if keyword in ("anyOf", "oneOf"):
            return self._counted(node, keyword)
        if keyword == "if":
            return self._if(node)
        if keyword == "dependentSchemas":
            return self._dependent(node)
        return None

    def _against(self, part: SchemaNode) -> _Cases:
        return [(branch, _NOTHING) for branch in self.both_ways(part, False)]

    def _counted(self, node: SchemaNode, keyword: str) -> _Cases:
        """Return the cases of `anyOf` and `oneOf`, each part either holding or not."""
        open_, done = [(ANYTHING, _NOTHING)], list[tuple[Branch, Seen]]()
        for part in self.listed(node, keyword):
            holds, fails = self._cases(part), self._against(part)
            more = self._product(node, open_, holds)
            again = [] if keyword == "oneOf" else self._product(node, done, holds)
            done = self._product(node, done, fails) + more + again
            open_ = self._product(node, open_, fails)
        return done

    def _if(self, node: SchemaNode) -> _Cases:
        condition = self.document.below(node, "if")
        found: _Cases = []
        for keyword, cases in (
            ("then", self._cases(condition)),
            ("else", self._against(condition)),
        ):
            if keyword in node.value:
                cases = self._product(node, cases, self._cases(self.document.below(node, keyword)))
            found += cases
        return found

    def _dependent(self, node: SchemaNode) -> _Cases:
        cases: _Cases = [(ANYTHING, _NOTHING)]
        for key in mapping(node, "dependentSchemas", node.value["dependentSchemas"]):
            part = self._cases(self.document.below(node, "dependentSchemas", key))
            there: _Cases = [(b, _NOTHING) for b in only(Present(key, True))]
            without: _Cases = [(b, _NOTHING) for b in when(Present(key, False))]
            cases = self._product(node, cases, without + self._product(node, there, part))
        return cases

    def _looked_at(self, node: SchemaNode, keyword: str) -> Seen:
        if keyword == "contains":
            return Seen(matching=frozenset({self.document.below(node, keyword)}))
        return _looked_at(node, keyword)


def _looked_at(node: SchemaNode, keyword: str) -> Seen:
    value = node.value[keyword]
    if keyword == "properties":
        return Seen(names=frozenset(value))
    if keyword == "patternProperties":
        return Seen(patterns=frozenset(value))
    if keyword == "additionalProperties":
        return Seen(all_properties=True)
    if keyword == "prefixItems" or (keyword == "items" and isinstance(value, list)):
        return Seen(n_items=len(value))
    if keyword in ("items", "additionalItems"):
        return Seen(all_items=True)
    return Seen()
