"""The grammar of a schema while it is being written: rules, terminals, and what is impossible."""

from collections.abc import Callable
from dataclasses import dataclass

from engine.errors import GrammarError
from engine.grammar import lark, library
from engine.grammar.compose import compose
from engine.grammar.rules import EMPTY, Choice, Node, Reference, Repeat, Sequence, references, walk

MAX_RULES = 3000
MAX_CHECKS = 400  # terminals of several conditions that are looked at whether any text fits
NEVER = Choice(())


@dataclass(frozen=True)
class Terminal:
    """What the library reads as one terminal, as Lark text; or a rule of its own (`is_rule`)."""

    text: str
    is_rule: bool = False


def exactly(regex: str) -> Node:
    """Return the terminal of a regular expression."""
    return Terminal(f"/{regex}/")  # type: ignore[return-value]


class Writing:
    """Rules by name; each is written once, when the one before is done, so nothing recurses."""

    def __init__(self) -> None:
        self._bodies: dict[str, Node] = {}
        self._waiting: list[tuple[str, Callable[[], Node]]] = []
        self._names: dict[object, str] = {}
        self._combined: dict[str, Node] = {}

    def all_of(self, parts: list[str]) -> Node:
        """Return the terminal of texts that match all Lark terminals; NEVER if there are none."""
        text = " & ".join(dict.fromkeys(parts))
        if text not in self._combined:
            if len(self._combined) >= MAX_CHECKS:
                raise GrammarError(
                    "The schema is too large to be honoured: it combines patterns, lengths or"
                    f" names in more than {MAX_CHECKS} ways."
                )
            empty = len(parts) > 1 and library.is_empty(text)
            self._combined[text] = NEVER if empty else Terminal(text)  # type: ignore[assignment]
        return self._combined[text]

    def rule(self, key: object, write: Callable[[], Node]) -> Node:
        """Return a reference to the rule for `key`, which `write` gives the body of later."""
        if key not in self._names:
            if len(self._names) >= MAX_RULES:
                raise GrammarError(
                    "The schema is too large to be honoured: it needs more than"
                    f" {MAX_RULES:,} rules; lower its counts or split it."
                )
            self._names[key] = f"r{len(self._names)}"
            self._waiting.append((self._names[key], write))
        return Reference(self._names[key])

    def lark(self, start: Node) -> str:
        """Return the Lark text that begins with `start`; raises GrammarError if nothing fits."""
        while self._waiting:
            name, write = self._waiting.pop()
            self._bodies[name] = write()
        productive = self._productive()
        bodies = {name: _possible(self._bodies[name], productive) for name in productive}
        first = _possible(start, productive)
        if first is None:
            raise GrammarError("The schema cannot be honoured: no value fulfils it.")
        written = {name: body for name, body in bodies.items() if body is not None}
        written = self._reachable(first, written)
        return _write({"root": first} | written)

    def _productive(self) -> set[str]:
        """Return the rules that some finite text fulfils."""
        users: dict[str, set[str]] = {name: set() for name in self._bodies}
        for name, body in self._bodies.items():
            for other in references(body):
                users[other].add(name)
        found: set[str] = set()
        waiting = set(self._bodies)
        while waiting:
            name = waiting.pop()
            if name not in found and _possible(self._bodies[name], found) is not None:
                found.add(name)
                waiting |= users[name] - found
        return found

    def _reachable(self, start: Node, bodies: dict[str, Node]) -> dict[str, Node]:
        found = references(start)
        waiting = list(found)
        while waiting:
            more = references(bodies[waiting.pop()]) - found
            found |= more
            waiting.extend(more)
        return {name: body for name, body in bodies.items() if name in found}


def _possible(node: Node, productive: set[str]) -> Node | None:
    """Return a node without the options that nothing fulfils; None if that leaves nothing."""
    if isinstance(node, Reference):
        return node if node.name in productive else None
    if isinstance(node, Choice):
        options = [_possible(option, productive) for option in node.options]
        left = tuple(dict.fromkeys(option for option in options if option is not None))
        return None if not left else left[0] if len(left) == 1 else Choice(left)
    if isinstance(node, Repeat):
        part = _possible(node.part, productive)
        if part is None:
            return None if node.least else EMPTY
        return Repeat(part, node.least, node.most)
    if isinstance(node, Sequence):
        parts = [_possible(part, productive) for part in node.parts]
        return None if None in parts else Sequence(tuple(p for p in parts if p is not None))
    return node


def _write(bodies: dict[str, Node]) -> str:
    names: dict[Node, str] = {}
    lines: list[tuple[str, str]] = []
    for body in bodies.values():
        for node in walk(body):
            if isinstance(node, Terminal) and node not in names:
                names[node] = f"{'j' if node.is_rule else 'T'}{len(lines)}"
                lines.append((names[node], node.text))
    return compose(bodies, names) + lark.grammar(lines)
