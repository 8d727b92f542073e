"""Moves the choice of wanted rows as early in a graph as it may go."""

from dataclasses import replace
from types import MappingProxyType

from engine.compute.graph import OUTPUTS, Graph, Node, Value
from engine.compute.ops import find_op


def sink_rows(graph: Graph) -> Graph:
    """Return the graph with every `rows` moved as early as it may go.

    rows(f(a, b)) becomes f(rows(a), rows(b)) while f is row-wise (or attends) and nothing else
    reads f's results: the last layer then computes only what somebody wants to see.
    """
    nodes, n_values = list(graph.nodes), graph.n_values
    while True:
        nodes = _take_rows_once(nodes)
        at = _find_movable(nodes)
        if at is None:
            return Graph(nodes, graph.answer, n_values)
        maker = nodes[at]
        takers = {node.values[0].id: node for node in nodes if node.op == "rows"}
        early = []
        for x in maker.values:
            wanted = Value(n_values, OUTPUTS, x.width, x.is_float)
            n_values += 1
            early.append(Node("rows", (x,), (), MappingProxyType({}), (wanted,)))
        inputs = tuple(node.result for node in early)
        results = tuple(takers[value.id].result for value in maker.results)
        late = replace(maker, values=inputs, results=results)
        gone = {value.id for value in results}
        after = [n for n in nodes[at + 1 :] if not (n.op == "rows" and n.result.id in gone)]
        nodes = [*nodes[:at], *early, late, *after]


def _find_movable(nodes: list[Node]) -> int | None:
    """Return the index of a node whose every result is read by one `rows` and nothing else."""
    readers: dict[int, list[str]] = {}
    for node in nodes:
        for value in node.values:
            readers.setdefault(value.id, []).append(node.op)
    for i, node in enumerate(nodes):
        can_move = find_op(node.op).is_row_wise or node.op == "attend"
        if can_move and all(readers.get(value.id) == ["rows"] for value in node.results):
            return i
    return None


def _take_rows_once(nodes: list[Node]) -> list[Node]:
    """Take the rows of one value once, and use them wherever they are read."""
    taken: dict[int, Value] = {}
    same: dict[int, Value] = {}
    kept = []
    for node in nodes:
        values = tuple(same.get(value.id, value) for value in node.values)
        if node.op == "rows":
            first = taken.setdefault(values[0].id, node.result)
            if first is not node.result:
                same[node.result.id] = first
                continue
        kept.append(replace(node, values=values))
    return kept
