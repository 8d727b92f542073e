"""Each keyword of JSON Schema as branches: where it holds, and where it does not."""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

from engine.errors import GrammarError
from engine.grammar.pattern import read_pattern
from engine.grammar.rules import Node
from engine.grammar.schema.documents import Document, SchemaNode
from engine.grammar.schema.formats import FORMATS, LONGEST
from engine.grammar.schema.terms import (
    KINDS,
    Bound,
    Branch,
    Contains,
    Item,
    Keys,
    Length,
    Matches,
    Multiple,
    Names,
    Numbers,
    Present,
    Property,
    Size,
    Texts,
    Unique,
    Values,
    Whole,
    of_kinds,
    only,
    when,
)

_TYPES = {"boolean": ("true", "false"), "integer": ("number",)} | {k: (k,) for k in KINDS}


class Keywords:
    """The keywords that speak about the instance itself, without applying other schemas to it."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def type(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        """A kind, or one of several."""
        names = value if isinstance(value, list) else [value]
        for name in names:
            if name not in ("boolean", "integer", "number", "string", "null", "array", "object"):
                raise node.refuse("type", f"names {name!r}, which is no type of JSON")
        kinds = {kind for name in names for kind in _TYPES[name]}
        whole = "integer" in names and "number" not in names
        if holds:
            return [Branch(frozenset(kinds), (Whole(True),) if whole else ())] if kinds else []
        return of_kinds(set(KINDS) - kinds) + (only(Whole(False)) if whole else [])

    def enum(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        """One of the values."""
        if not isinstance(value, list):
            raise node.refuse("enum", "must be a list")
        return self._one_of(node, "enum", value, holds)

    def _one_of(
        self, node: SchemaNode, keyword: str, value: list[Any], holds: bool
    ) -> list[Branch]:
        texts = tuple(dict.fromkeys(v for v in value if isinstance(v, str)))
        numbers = frozenset(number(node, keyword, v) for v in value if _is_number(v))
        plain = {
            kind for kind, v in (("null", None), ("true", True), ("false", False)) if _has(value, v)
        }
        larger = [
            self.document.made(node, keyword, i, _exactly(v))
            for i, v in enumerate(value)
            if isinstance(v, list | dict)
        ]
        if holds:
            found = of_kinds(plain)
            found += only(Texts(texts, True)) if texts else []
            found += only(Numbers(numbers, True)) if numbers else []
            return found + [b for each in larger for b in self.both_ways(each, True)]
        branches = [
            Branch(
                frozenset(KINDS) - plain,
                (
                    *([Texts(texts, False)] if texts else []),
                    *([Numbers(numbers, False)] if numbers else []),
                ),
            )
        ]
        for each in larger:
            branches = self.join(node, branches, self.both_ways(each, False))
        return branches

    def both_ways(self, node: SchemaNode, holds: bool) -> list[Branch]:
        """Return the branches of a whole subschema."""
        raise NotImplementedError

    def join(self, node: SchemaNode, left: list[Branch], right: list[Branch]) -> list[Branch]:
        """Return the branches where both hold."""
        raise NotImplementedError

    def const(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        """Exactly this value."""
        return self._one_of(node, "const", [value], holds)

    def minimum(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        return _bound(number(node, "minimum", value), True, False, holds)

    def maximum(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        return _bound(number(node, "maximum", value), False, False, holds)

    def exclusive_minimum(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        return _bound(number(node, "exclusiveMinimum", value), True, True, holds)

    def exclusive_maximum(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        return _bound(number(node, "exclusiveMaximum", value), False, True, holds)

    def multiple_of(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        of = number(node, "multipleOf", value)
        if of <= 0:
            raise node.refuse("multipleOf", "must be above 0")
        if not holds:
            raise node.refuse("multipleOf", "is negated, which is not supported")
        return when(Multiple(of, node))

    def pattern(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        term = Matches(pattern_node(node, "pattern", value), holds, node, "pattern")
        return when(term) if holds else only(term)

    def format(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        if not isinstance(value, str) or value not in FORMATS:
            known = ", ".join(sorted(FORMATS))
            name = repr(value)[:60]
            raise node.refuse("format", f"names {name}, which is not known ({known} are)")
        term = Matches(_format_node(value), holds, node, "format")
        longest = LONGEST.get(value)
        if longest is None:
            return when(term) if holds else only(term)
        if holds:
            return when(term, Length(0, longest, node))
        return only(term) + only(Length(longest + 1, None, node))

    def min_length(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        n = count(node, "minLength", value)
        return when(Length(n, None, node)) if holds else _below(n, lambda m: Length(0, m, node))

    def max_length(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        n = count(node, "maxLength", value)
        return when(Length(0, n, node)) if holds else only(Length(n + 1, None, node))

    def min_items(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        n = count(node, "minItems", value)
        if holds:
            return when(Size("array", n, None, node))
        return _below(n, lambda m: Size("array", 0, m, node))

    def max_items(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        n = count(node, "maxItems", value)
        size = Size("array", 0, n, node) if holds else Size("array", n + 1, None, node)
        return when(size) if holds else only(size)

    def min_properties(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        n = count(node, "minProperties", value)
        if holds:
            return when(Size("object", n, None, node))
        return _below(n, lambda m: Size("object", 0, m, node))

    def max_properties(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        n = count(node, "maxProperties", value)
        size = Size("object", 0, n, node) if holds else Size("object", n + 1, None, node)
        return when(size) if holds else only(size)

    def unique_items(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        if value is False:
            return when() if holds else []
        if value is not True:
            raise node.refuse("uniqueItems", "must be true or false")
        if not holds:
            raise node.refuse("uniqueItems", "is negated, which is not supported")
        return when(Unique(node))

    def prefix_items(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        if not isinstance(value, list):
            raise node.refuse("prefixItems", "must be a list of schemas")
        name = "prefixItems" if "prefixItems" in node.value else "items"
        parts = [self.document.below(node, name, i) for i in range(len(value))]
        if holds:
            return when(*(Item(i, False, (part, True)) for i, part in enumerate(parts)))
        return [
            branch
            for i, part in enumerate(parts)
            for branch in only(Item(i, False, (part, False)), Size("array", i + 1, None, node))
        ]

    def items(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        if isinstance(value, list):  # the form of older drafts
            return self.prefix_items(node, value, holds)
        before = node.get("prefixItems", [])
        if not isinstance(before, list):
            raise node.refuse("prefixItems", "must be a list of schemas")
        return self._later_items(node, "items", len(before), holds)

    def additional_items(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        if not isinstance(node.get("items"), list):
            raise node.refuse("additionalItems", "needs a list under “items”; use “prefixItems”")
        return self._later_items(node, "additionalItems", len(node.get("items")), holds)

    def _later_items(self, node: SchemaNode, name: str, start: int, holds: bool) -> list[Branch]:
        part = self.document.below(node, name)
        if holds:
            return when(Item(start, True, (part, True)))
        return only(Contains(start, (part, False), 1, None, node))

    def contains(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        least = count(node, "minContains", node.get("minContains", 1))
        most = node.get("maxContains")
        most = None if most is None else count(node, "maxContains", most)
        literal = (self.document.below(node, "contains"), True)
        if holds:
            return when(Contains(0, literal, least, most, node))
        found = only(Contains(0, literal, 0, least - 1, node)) if least else []
        return found + (
            only(Contains(0, literal, most + 1, None, node)) if most is not None else []
        )

    def required(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        names = strings(node, "required", value)
        if holds:
            return when(*(Present(name, True) for name in names))
        return [b for name in names for b in only(Present(name, False))]

    def dependent_required(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        branches = when() if holds else []
        for key, needed in mapping(node, "dependentRequired", value).items():
            names = strings(node, "dependentRequired", needed)
            if holds:
                both = (Present(key, True), *(Present(name, True) for name in names))
                branches = self.join(node, branches, when(Present(key, False)) + only(*both))
            else:
                branches += [b for n in names for b in only(Present(key, True), Present(n, False))]
        return branches

    def properties(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        names = mapping(node, "properties", value)
        parts = {name: self.document.below(node, "properties", name) for name in names}
        if holds:
            return when(*(Property(name, (part, True)) for name, part in parts.items()))
        return [
            b
            for name, part in parts.items()
            for b in only(Present(name, True), Property(name, (part, False)))
        ]

    def pattern_properties(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        terms = []
        for pattern in mapping(node, "patternProperties", value):
            pattern_node(node, "patternProperties", pattern)
            part = self.document.below(node, "patternProperties", pattern)
            terms.append(Values(Keys(pattern), (part, holds), holds, node))
        return when(*terms) if holds else [b for term in terms for b in only(term)]

    def additional_properties(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        part = self.document.below(node, "additionalProperties")
        keys = Keys(
            None,
            frozenset(mapping(node, "properties", node.get("properties", {}))),
            frozenset(mapping(node, "patternProperties", node.get("patternProperties", {}))),
        )
        term = Values(keys, (part, holds), holds, node)
        return when(term) if holds else only(term)

    def property_names(self, node: SchemaNode, value: Any, holds: bool) -> list[Branch]:
        part = self.document.below(node, "propertyNames")
        term = Names((part, holds), holds, node)
        return when(term) if holds else only(term)


def _bound(limit: Fraction, is_least: bool, exclusive: bool, holds: bool) -> list[Branch]:
    if holds:
        return when(Bound(limit, is_least, exclusive))
    return only(Bound(limit, not is_least, not exclusive))


def _below(n: int, term: Callable[[int], Any]) -> list[Branch]:
    return only(term(n - 1)) if n else []


def _has(values: list[Any], wanted: Any) -> bool:
    return any(value is wanted for value in values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _exactly(value: Any) -> dict[str, Any]:
    """Return the schema of one value."""
    if isinstance(value, list):
        parts = [_exactly(each) for each in value]
        size = {"minItems": len(value), "maxItems": len(value)}
        return {"type": "array", **({"prefixItems": parts} if parts else {}), **size}
    if isinstance(value, dict):
        return {
            "type": "object",
            "properties": {key: _exactly(each) for key, each in value.items()},
            "required": list(value),
            "additionalProperties": False,
        }
    return {"const": value}


def number(node: SchemaNode, keyword: str, value: Any) -> Fraction:
    """Return a number exactly; raises GrammarError for anything else."""
    if not _is_number(value) or value != value or abs(value) == float("inf"):
        raise node.refuse(keyword, f"must be a finite number, but is {value!r}")
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def count(node: SchemaNode, keyword: str, value: Any) -> int:
    """Return a whole number of 0 or more; raises GrammarError for anything else."""
    if not _is_number(value) or value != value or value < 0 or value % 1:
        raise node.refuse(keyword, f"must be a whole number of 0 or more, but is {value!r}")
    return int(value)


def strings(node: SchemaNode, keyword: str, value: Any) -> list[str]:
    """Return a list of texts; raises GrammarError for anything else."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise node.refuse(keyword, "must be a list of names")
    return value


def mapping(node: SchemaNode, keyword: str, value: Any) -> dict[str, Any]:
    """Return an object; raises GrammarError for anything else."""
    if not isinstance(value, dict):
        raise node.refuse(keyword, "must be an object")
    return value


@cache
def _format_node(name: str) -> Node:
    return read_pattern(FORMATS[name], whole=True)


def pattern_node(node: SchemaNode, keyword: str, value: Any) -> Node:
    """Return the node of a pattern; raises GrammarError with the place of the mistake."""
    try:
        return read_pattern(value)
    except GrammarError as error:
        raise node.refuse(keyword, f"cannot be used: {error}".removesuffix(".")) from error
