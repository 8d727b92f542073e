"""Rules as Lark text that the matching library can read without running out of stack.

The library follows references by recursion while it reads, and a stack that overflows ends the
process. So deep groups become rules of their own, long chains of rules are read from their far
end, and what would still go too deep is refused.
"""

import sys
from collections.abc import Iterator

from engine.errors import GrammarError
from engine.grammar import lark
from engine.grammar.rules import (
    Choice,
    Node,
    Reference,
    Repeat,
    Rules,
    Sequence,
    leftmost,
    walk,
)

MAX_NESTED = 8  # groups inside groups of one rule
SHALLOW = 300  # rules inside rules, weighed, that are surely fine
# Measured with 8 MiB of stack: 3,000 are fine, 4,000 are not. Windows gives a thread 1 MiB.
MAX_STACKED = 300 if sys.platform == "win32" else 1500
MAX_EXPECTED = 600  # rules that one place may begin; their pairs are compared at each place
_NEVER = r"/[^\x{0}-\x{10FFFF}]/"


def compose(bodies: dict[str, Node], terminals: dict[Node, str]) -> str:
    """Return the Lark text of rules that begin at `root`.

    `terminals` names the nodes that are read as one; in Lark rules are called start, r0, r1 ….
    Raises GrammarError where rules nest too deep.
    """
    bodies = _shallow(bodies, terminals)
    names = {name: f"r{i}" for i, name in enumerate(bodies)}
    names["root"] = "start"
    inside = {name: list(_references(body, terminals)) for name, body in bodies.items()}
    _refuse_wide(bodies, terminals)
    first = _reading_order(inside)
    known: dict[Node, str] = {Reference(name): text for name, text in names.items()} | terminals
    lines = [(names[name], lark.rule_body(body, known)) for name, body in bodies.items()]
    if first:
        options = " | ".join(names[name] for name in first if name != "root")
        lines = [("start", f"{_NEVER} ({options}) | r_root"), *lines]
        lines = [("r_root" if i and n == "start" else n, body) for i, (n, body) in enumerate(lines)]
    return lark.grammar(lines)


def _references(node: Node, terminals: dict[Node, str]) -> Iterator[str]:
    """Yield the rules that a node refers to outside terminals, in reading order."""
    if node in terminals:
        return
    if isinstance(node, Reference):
        yield node.name
    inner = node.parts if isinstance(node, Sequence) else ()
    inner = node.options if isinstance(node, Choice) else inner
    for each in (node.part,) if isinstance(node, Repeat) else inner:
        yield from _references(each, terminals)


def _refuse_wide(bodies: dict[str, Node], terminals: dict[Node, str]) -> None:
    """Raise GrammarError where one rule can begin with too many others."""
    nullable = Rules(bodies).nullable
    begins = {name: leftmost(body, nullable, terminals) for name, body in bodies.items()}
    for name in bodies:
        seen, waiting = {name}, [name]
        while waiting:
            more = begins[waiting.pop()] - seen
            seen |= more
            waiting += more
            if len(seen) > MAX_EXPECTED:
                raise GrammarError(
                    f"The grammar is too wide: more than {MAX_EXPECTED} rules may begin at one"
                    " place; join their texts in one rule, or give fewer alternatives."
                )


def _reading_order(inside: dict[str, list[str]]) -> list[str]:
    """Return the order in which rules must be read, or nothing when any will do."""
    if _stacked(inside, ["root"]) <= SHALLOW:
        return []
    order: list[str] = []
    seen = {"root"}
    path = [("root", iter(inside["root"]))]
    while path:
        name, others = path[-1]
        other = next((each for each in others if each not in seen), None)
        if other is None:
            order.append(name)
            path.pop()
        else:
            seen.add(other)
            path.append((other, iter(inside[other])))
    if _stacked(inside, order) > MAX_STACKED:
        raise GrammarError(
            "The grammar refers from rule to rule too deep to be followed: make it shorter."
        )
    return order


def _stacked(inside: dict[str, list[str]], order: list[str]) -> int:
    """Return how deep the library recurses when it reads rules in this order."""
    deepest, seen = 0, set[str]()
    for start in order:
        if start in seen:
            continue
        seen.add(start)
        path = [iter(inside[start])]
        while path:
            deepest = max(deepest, len(path))
            other = next((each for each in path[-1] if each not in seen), None)
            if other is None:
                path.pop()
            else:
                seen.add(other)
                path.append(iter(inside[other]))
    return deepest * 2


def _shallow(bodies: dict[str, Node], terminals: dict[Node, str]) -> dict[str, Node]:
    """Return rules in which no group lies deeper than MAX_NESTED."""
    if all(_depth(body) <= MAX_NESTED for body in bodies.values()):
        return bodies
    found: dict[str, Node] = {}
    waiting = list(bodies.items())
    while waiting:
        name, body = waiting.pop()
        cut: list[tuple[str, Node]] = []
        found[name] = _cut(body, MAX_NESTED, name, cut, terminals)
        waiting += cut
    return found


def _depth(node: Node) -> int:
    """Return a bound of the groups inside groups of a node."""
    return sum(1 for each in walk(node) if isinstance(each, Choice | Repeat | Sequence))


def _cut(
    node: Node, left: int, name: str, cut: list[tuple[str, Node]], terminals: dict[Node, str]
) -> Node:
    if node in terminals or not isinstance(node, Choice | Repeat | Sequence):
        return node
    if left == 0:
        cut.append((f"{name} {len(cut)}", node))
        return Reference(cut[-1][0])
    if isinstance(node, Repeat):
        return Repeat(_cut(node.part, left - 1, name, cut, terminals), node.least, node.most)
    if isinstance(node, Choice):
        return Choice(tuple(_cut(n, left - 1, name, cut, terminals) for n in node.options))
    return Sequence(tuple(_cut(n, left - 1, name, cut, terminals) for n in node.parts))
