"""Which parts of a grammar are read as one terminal, and the Lark text that results.

The matching library splits text into terminals by longest match and never goes back. Terminals of
one code point each are always right but slow (8 ms for a mask over 262k tokens); a whole part such
as a string in quotes takes microseconds. So a regular part becomes one terminal where
`engine.grammar.longest` proves that the longest match ends at the right place.
"""

from engine.grammar import lark
from engine.grammar.compose import compose
from engine.grammar.longest import Unproven, clashes
from engine.grammar.rules import (
    EMPTY,
    Characters,
    Choice,
    Node,
    OneToken,
    Reference,
    Repeat,
    Rules,
    Sequence,
    children,
    empty,
    joined,
    references,
    walk,
)

MAX_INLINED = 4000  # nodes of one terminal after its references are put in
MAX_INLINED_DEPTH = 60  # rules inside rules of one terminal


def to_lark(rules: Rules, *, whole: bool = True) -> str:
    """Return the Lark text of a grammar.

    With `whole` a regular grammar is one terminal and regular parts are joined where that is
    safe; without, every terminal is one code point.
    """
    bodies = _reachable(_without_right_recursion(rules))
    if not whole:
        return _write(bodies, [])
    regular = _regular_rules(bodies)
    if rules.root in regular:
        return lark.grammar([("start", "T0"), ("T0", lark.terminal(regular[rules.root]))])
    bodies = {name: _grouped(body, regular) for name, body in bodies.items() if name not in regular}
    if sum(1 for body in bodies.values() for _ in walk(body)) > MAX_INLINED:
        return _write(bodies, [])
    try:
        return _write(*_with_safe_terminals(bodies))
    except Unproven:
        return _write(bodies, [])


def _with_safe_terminals(bodies: dict[str, Node]) -> tuple[dict[str, Node], list[Node]]:
    """Return the rules and the nodes in them that may be one terminal each.

    A node that clashes gives up what it may end with, then being one terminal at all.
    """
    long = {n: None for body in bodies.values() for n in _tops(body) if _may_be_terminal(n)}
    while unsafe := clashes(bodies, list(long)):
        for node in unsafe:
            del long[node]
            core, tail = _core(node)
            if tail:
                bodies = {
                    name: _replaced(body, node, (core, *tail)) for name, body in bodies.items()
                }
                long.update({core: None} if _may_be_terminal(core) else {})
    return bodies, list(long)


def _may_be_terminal(node: Node) -> bool:
    return not isinstance(node, Characters) and node != EMPTY and not empty(node)


def _core(node: Node) -> tuple[Node, tuple[Node, ...]]:
    """Split off what a sequence may end with and may leave out."""
    parts = node.parts if isinstance(node, Sequence) else (node,)
    n = len(parts)
    while n and empty(parts[n - 1]):
        n -= 1
    return joined(parts[:n]), parts[n:]


def _replaced(node: Node, old: Node, parts: tuple[Node, ...]) -> Node:
    if node == old:
        return Sequence(parts)
    if isinstance(node, Choice):
        return Choice(tuple(_replaced(option, old, parts) for option in node.options))
    if isinstance(node, Repeat):
        return Repeat(_replaced(node.part, old, parts), node.least, node.most)
    if isinstance(node, Sequence):
        return Sequence(tuple(_replaced(part, old, parts) for part in node.parts))
    return node


def _write(bodies: dict[str, Node], terminals: list[Node]) -> str:
    named: dict[Node, str] = {node: f"T{i}" for i, node in enumerate(terminals)}
    lines = [(name, lark.terminal(node)) for node, name in named.items()]
    return compose(bodies, named) + lark.grammar(lines)


def _reachable(bodies: dict[str, Node]) -> dict[str, Node]:
    found, waiting = {"root"}, ["root"]
    while waiting:
        more = references(bodies[waiting.pop()]) - found
        found |= more
        waiting.extend(more)
    return {name: body for name, body in bodies.items() if name in found}


def _without_right_recursion(rules: Rules) -> dict[str, Node]:
    """Write rules such as `s ::= x s | y` as `x* y`."""
    return {name: _unrolled(name, body) for name, body in rules.bodies.items()}


def _unrolled(name: str, body: Node) -> Node:
    options = body.options if isinstance(body, Choice) else (body,)
    loops: list[Node] = []
    ends: list[Node] = []
    for option in options:
        parts = option.parts if isinstance(option, Sequence) else (option,)
        if parts and parts[-1] == Reference(name):
            loops.append(joined(parts[:-1]))
        else:
            ends.append(option)
    if not loops or not ends or any(name in references(n) for n in loops + ends):
        return body
    loop = loops[0] if len(loops) == 1 else Choice(tuple(loops))
    end = ends[0] if len(ends) == 1 else Choice(tuple(ends))
    return joined([Repeat(loop, 0, None), end])


def _regular_rules(bodies: dict[str, Node]) -> dict[str, Node]:
    """Return the rules that hold no token and no recursion, with their references put in."""
    found: dict[str, Node] = {}
    sizes: dict[str, int] = {}
    depths: dict[str, int] = {}
    while True:
        ready = [
            name
            for name, body in bodies.items()
            if name not in sizes and references(body) <= found.keys()
        ]
        if not ready:
            return found
        for name in ready:
            size = sum(sizes[n.name] if isinstance(n, Reference) else 1 for n in walk(bodies[name]))
            has_token = any(isinstance(n, OneToken) for n in walk(bodies[name]))
            sizes[name] = size
            depths[name] = 1 + max((depths[n] for n in references(bodies[name])), default=0)
            if size <= MAX_INLINED and depths[name] <= MAX_INLINED_DEPTH and not has_token:
                found[name] = _inlined(bodies[name], found)


def _inlined(node: Node, known: dict[str, Node]) -> Node:
    if isinstance(node, Reference):
        return known[node.name]
    if isinstance(node, Choice):
        return Choice(tuple(_inlined(option, known) for option in node.options))
    if isinstance(node, Repeat):
        return Repeat(_inlined(node.part, known), node.least, node.most)
    if isinstance(node, Sequence):
        return joined(_inlined(part, known) for part in node.parts)
    return node


def _is_regular(node: Node, regular: dict[str, Node]) -> bool:
    return not any(isinstance(n, OneToken) for n in walk(node)) and (
        references(node) <= regular.keys()
    )


def _grouped(node: Node, regular: dict[str, Node]) -> Node:
    """Put references to regular rules in, and regular parts together: each with what may follow.

    A new terminal begins at each part that is not empty, so `"," space name ":" space` becomes
    three, as the places where they are expected differ.
    """
    if _is_regular(node, regular) and not isinstance(node, Sequence):
        return _inlined(node, regular)
    if isinstance(node, Choice):
        return Choice(tuple(_grouped(option, regular) for option in node.options))
    if isinstance(node, Repeat):
        return Repeat(_grouped(node.part, regular), node.least, node.most)
    if not isinstance(node, Sequence):
        return node
    parts: list[Node] = []
    run: list[Node] = []
    for part in node.parts:
        if not _is_regular(part, regular):
            parts += [*_run(run), _grouped(part, regular)]
            run = []
            continue
        whole = _inlined(part, regular)
        goes_on = isinstance(part, Characters) and run and isinstance(run[-1], Characters)
        if run and not empty(whole) and not goes_on:
            parts += _run(run)
            run = []
        run.append(whole)
    return Sequence(tuple(parts + _run(run)))


def _run(parts: list[Node]) -> list[Node]:
    return [joined(parts)] if parts else []


def _tops(node: Node) -> dict[Node, None]:
    """Return the largest regular nodes inside one, where it is not a sequence of several."""
    if not isinstance(node, Sequence) and _is_regular(node, {}):
        return {node: None}
    found: dict[Node, None] = {}
    for each in children(node):
        found |= {each: None} if _is_regular(each, {}) else _tops(each)
    return found
