"""Rules over code points: the nodes that a GBNF text or a regular expression is read into."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

LAST = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)
Range: TypeAlias = tuple[int, int]  # code points, both ends included


@dataclass(frozen=True)
class Characters:
    """One code point out of `ranges`: sorted, disjoint, without surrogates."""

    ranges: tuple[Range, ...]


@dataclass(frozen=True)
class Sequence:
    """Parts one after another; without parts, the empty text."""

    parts: tuple["Node", ...]


@dataclass(frozen=True)
class Choice:
    """Any one of the options."""

    options: tuple["Node", ...]


@dataclass(frozen=True)
class Repeat:
    """`least` to `most` times the part; None means without end."""

    part: "Node"
    least: int
    most: int | None


@dataclass(frozen=True)
class Reference:
    """Another rule by its name."""

    name: str


@dataclass(frozen=True)
class OneToken:
    """Exactly the token with this id, or, negated, any single token but that one."""

    token: int
    negated: bool = False


Node: TypeAlias = Characters | Sequence | Choice | Repeat | Reference | OneToken
EMPTY = Sequence(())


@dataclass(frozen=True)
class Rules:
    """A grammar: rule names to nodes; it begins at `root`."""

    bodies: dict[str, Node]
    root: str = "root"

    @cached_property
    def nullable(self) -> frozenset[str]:
        """Names of the rules that match the empty text."""
        users: dict[str, set[str]] = {name: set() for name in self.bodies}
        for name, body in self.bodies.items():
            for other in references(body) & users.keys():
                users[other].add(name)
        found: set[str] = set()
        waiting = set(self.bodies)
        while waiting:
            name = waiting.pop()
            if name not in found and empty(self.bodies[name], found):
                found.add(name)
                waiting |= users[name] - found
        return frozenset(found)


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly inside one."""
    if isinstance(node, Sequence):
        return node.parts
    if isinstance(node, Choice):
        return node.options
    return (node.part,) if isinstance(node, Repeat) else ()


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything inside it."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        yield each
        waiting.extend(children(each))


def references(node: Node) -> set[str]:
    """Return the names of the rules that a node refers to."""
    return {each.name for each in walk(node) if isinstance(each, Reference)}


def empty(node: Node, nullable: Iterable[str] = ()) -> bool:
    """Whether a node matches the empty text, given the names of rules that do."""
    if isinstance(node, Sequence):
        return all(empty(part, nullable) for part in node.parts)
    if isinstance(node, Choice):
        return any(empty(option, nullable) for option in node.options)
    if isinstance(node, Repeat):
        return node.least == 0 or empty(node.part, nullable)
    return isinstance(node, Reference) and node.name in nullable


def leftmost(node: Node, nullable: Iterable[str], closed: Iterable[Node] = ()) -> set[str]:
    """Return the rules that a node can begin with; nodes in `closed` are not looked into."""
    if node in closed:
        return set()
    if isinstance(node, Reference):
        return {node.name}
    found: set[str] = set()
    for part in children(node):
        found |= leftmost(part, nullable, closed)
        if isinstance(node, Sequence) and not empty(part, nullable):
            break
    return found


def characters(ranges: Iterable[Range], negated: bool = False) -> Characters:
    """Return the set of code points in (or, negated, not in) any of the ranges."""
    merged = _merge(ranges)
    return Characters(_merge(_complement(merged)) if negated else merged)


def literal(text: str) -> Sequence:
    """Return the code points of a text in order."""
    return Sequence(tuple(characters([(ord(char), ord(char))]) for char in text))


def joined(parts: Iterable[Node]) -> Node:
    """Return a sequence without nested or needless sequences."""
    flat: list[Node] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Sequence) else (part,))
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def overlap(left: Iterable[Range], right: Iterable[Range]) -> bool:
    """Whether two sets of code points share one."""
    others = list(right)
    return any(a <= d and c <= b for a, b in left for c, d in others)


def _merge(ranges: Iterable[Range]) -> tuple[Range, ...]:
    merged: list[Range] = []
    for low, high in sorted(_whole(ranges)):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def _whole(ranges: Iterable[Range]) -> Iterator[Range]:
    """Yield ranges without surrogates, which are no characters of a text."""
    for low, high in ranges:
        if low < _SURROGATES[0]:
            yield low, min(high, _SURROGATES[0] - 1)
        if high > _SURROGATES[1]:
            yield max(low, _SURROGATES[1] + 1), high


def _complement(ranges: Iterable[Range]) -> Iterator[Range]:
    begin = 0
    for low, high in ranges:
        if begin < low:
            yield begin, low - 1
        begin = high + 1
    if begin <= LAST:
        yield begin, LAST
