"""What a schema demands at one place, as alternatives of plain terms.

An instance has one kind. A `Branch` lists the kinds it allows and the terms that hold for each;
a schema is a list of branches, any of which may hold. A literal is a subschema that must hold or,
with False, must not; a goal is a set of literals that all must.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from engine.grammar.rules import Node
from engine.grammar.schema.documents import SchemaNode

KINDS = ("null", "true", "false", "number", "string", "array", "object")
Literal: TypeAlias = tuple[SchemaNode, bool]
Goal: TypeAlias = frozenset[Literal]


@dataclass(frozen=True)
class Bound:
    """A number at least (or at most) `limit`; or above (below) it."""

    limit: Fraction
    is_least: bool
    exclusive: bool
    kind = "number"


@dataclass(frozen=True)
class Whole:
    """A number that is (or is not) an integer."""

    holds: bool
    kind = "number"


@dataclass(frozen=True)
class Multiple:
    """A multiple of a number."""

    of: Fraction
    node: SchemaNode = field(compare=False)
    kind = "number"


@dataclass(frozen=True)
class Numbers:
    """One (or none) of the numbers."""

    values: frozenset[Fraction]
    holds: bool
    kind = "number"


@dataclass(frozen=True)
class Texts:
    """One (or none) of the texts."""

    values: tuple[str, ...]
    holds: bool
    kind = "string"


@dataclass(frozen=True)
class Matches:
    """A text that matches (or does not match) a node as a whole."""

    node: Node
    holds: bool
    source: SchemaNode = field(compare=False)
    keyword: str = field(compare=False)
    kind = "string"


@dataclass(frozen=True)
class Length:
    """A text of so many characters."""

    least: int
    most: int | None
    node: SchemaNode = field(compare=False)
    kind = "string"


@dataclass(frozen=True)
class Item:
    """The item at one index, if there is one, or all from there on."""

    index: int
    and_later: bool
    literal: Literal
    kind = "array"


@dataclass(frozen=True)
class Contains:
    """So many items from an index on fulfil a literal."""

    start: int
    literal: Literal
    least: int
    most: int | None
    node: SchemaNode = field(compare=False)
    kind = "array"


@dataclass(frozen=True)
class Unique:
    """No two items are equal."""

    node: SchemaNode = field(compare=False)
    kind = "array"


@dataclass(frozen=True)
class Size:
    """So many items or properties."""

    kind: str
    least: int
    most: int | None
    node: SchemaNode = field(compare=False)


@dataclass(frozen=True)
class Property:
    """The value of a named property, if it is there."""

    name: str
    literal: Literal
    kind = "object"


@dataclass(frozen=True)
class Present:
    """A named property is there, or is not."""

    name: str
    holds: bool
    kind = "object"


@dataclass(frozen=True)
class Keys:
    """The keys that a pattern matches (when given), that are no `names` and match no `others`."""

    pattern: str | None = None
    names: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Values:
    """The values of all (or of some) of the keys fulfil a literal."""

    keys: Keys
    literal: Literal
    every: bool
    node: SchemaNode = field(compare=False)
    kind = "object"


@dataclass(frozen=True)
class Names:
    """All (or some) of the keys, as texts, fulfil a literal."""

    literal: Literal
    every: bool
    node: SchemaNode = field(compare=False)
    kind = "object"


Term: TypeAlias = (
    Bound
    | Whole
    | Multiple
    | Numbers
    | Texts
    | Matches
    | Length
    | Item
    | Contains
    | Unique
    | Size
    | Property
    | Present
    | Values
    | Names
)


@dataclass(frozen=True)
class Branch:
    """One way to fulfil a schema; `terms` in the order in which the schema names them."""

    kinds: frozenset[str]
    terms: tuple[Term, ...] = ()

    def of(self, kind: str) -> tuple[Term, ...]:
        """Return the terms for one kind."""
        return tuple(term for term in self.terms if term.kind == kind)


ANYTHING = Branch(frozenset(KINDS))


def when(*terms: Term) -> list[Branch]:
    """Return the branches of terms that hold if the instance is of their kind."""
    return [Branch(ANYTHING.kinds, terms)]


def only(*terms: Term) -> list[Branch]:
    """Return the branches of terms that hold and demand their kind."""
    return [Branch(frozenset({terms[0].kind}), terms)]


def of_kinds(kinds: Iterable[str]) -> list[Branch]:
    """Return the branches of instances of certain kinds."""
    found = frozenset(kinds)
    return [Branch(found)] if found else []


def both(left: list[Branch], right: list[Branch]) -> list[Branch]:
    """Return the branches in which one of each list holds, without those that cannot."""
    if left == [ANYTHING]:
        return right
    if right == [ANYTHING]:
        return left
    found: dict[Branch, None] = {}
    for a in left:
        for b in right:
            kinds = a.kinds & b.kinds
            terms = tuple(t for t in dict.fromkeys(a.terms + b.terms) if t.kind in kinds)
            kinds -= {kind for kind in kinds if contradictory(kind, terms)}
            if kinds:
                found[Branch(kinds, tuple(t for t in terms if t.kind in kinds))] = None
    return list(found)


def contradictory(kind: str, terms: tuple[Term, ...]) -> bool:
    """Whether terms plainly exclude each other; False proves nothing."""
    if kind == "number":
        return _no_number([t for t in terms if t.kind == kind])
    if kind == "string":
        allowed = [set(t.values) for t in terms if isinstance(t, Texts) and t.holds]
        banned = {v for t in terms if isinstance(t, Texts) and not t.holds for v in t.values}
        lengths = [t for t in terms if isinstance(t, Length)]
        return _crossed(lengths) or bool(allowed and not set.intersection(*allowed) - banned)
    if kind == "object":
        there = {t.name for t in terms if isinstance(t, Present) and t.holds}
        if there & {t.name for t in terms if isinstance(t, Present) and not t.holds}:
            return True
    return _crossed([t for t in terms if isinstance(t, Size) and t.kind == kind])


def _crossed(sizes: list[Size] | list[Length]) -> bool:
    most = min((t.most for t in sizes if t.most is not None), default=None)
    return most is not None and max((t.least for t in sizes), default=0) > most


def _no_number(terms: list[Term]) -> bool:
    if any(isinstance(t, Numbers) and t.holds for t in terms):
        return not numbers_left(terms)
    least = [t for t in terms if isinstance(t, Bound) and t.is_least]
    most = [t for t in terms if isinstance(t, Bound) and not t.is_least]
    if any(
        a.limit > b.limit or (a.limit == b.limit and (a.exclusive or b.exclusive))
        for a in least
        for b in most
    ):
        return True
    return len({t.holds for t in terms if isinstance(t, Whole)}) > 1


def numbers_left(terms: Iterable[Term]) -> list[Fraction]:
    """Return the numbers that fulfil terms of which one lists them."""
    listed = [t for t in terms if isinstance(t, Numbers) and t.holds]
    return sorted(v for v in listed[0].values if all(_fulfils(v, term) for term in terms))


def _fulfils(value: Fraction, term: Term) -> bool:
    if isinstance(term, Numbers):
        return (value in term.values) == term.holds
    if isinstance(term, Whole):
        return (value.denominator == 1) == term.holds
    if isinstance(term, Multiple):
        return (value / term.of).denominator == 1
    if isinstance(term, Bound):
        if value == term.limit:
            return not term.exclusive
        return (value > term.limit) == term.is_least
    return True
