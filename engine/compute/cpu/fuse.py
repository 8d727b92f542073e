"""From a graph to steps: each is one kernel call per ubatch, with what is worth fusing fused.

Norms and gates move into the input of the products that read them, biases and residual additions
into their output, head norms and rotations into the store of K and V. What a step may overwrite
is decided in `plan.py`, which knows when a value is read last.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from engine.compute.cpu.signatures import TRANSFORMS
from engine.compute.graph import OUTPUTS, Graph, Node, Rotation, Value, Weight
from engine.errors import InternalError

_PRODUCTS = ("mul_mat", "experts")


@dataclass(frozen=True)
class Input:
    """What a product reads: f(x), f one of TRANSFORMS."""

    transform: str
    x: Value
    x2: Value | None = None
    norm: Weight | None = None
    eps: float = 0.0

    @property
    def values(self) -> tuple[Value, ...]:
        """The values that are read."""
        return (self.x,) if self.x2 is None else (self.x, self.x2)


@dataclass(frozen=True)
class Turned:
    """Heads that the store of their layer normalises and rotates in place."""

    x: Value
    norm: Weight | None
    eps: float
    rotation: Rotation | None


@dataclass
class Step:
    """One kernel call: the node it stands for, what it reads and what it writes.

    `residual` is a value that the result is added to; `queries` and `keys` are the heads that a
    store turns.
    """

    op: str
    node: Node
    reads: tuple[Value, ...]
    writes: tuple[Value, ...]
    source: Input | None = None
    residual: Value | None = None
    queries: Turned | None = None
    keys: Turned | None = None
    factor: float = 1.0

    @property
    def turned(self) -> list[Turned]:
        """The heads that the step turns, queries first."""
        return [one for one in (self.queries, self.keys) if one is not None]


@dataclass
class _Fuser:
    nodes: list[Node]
    steps: list[Step] = field(default_factory=list)
    readers: dict[int, list[Node]] = field(default_factory=dict)
    makers: dict[int, Node] = field(default_factory=dict)
    inputs: dict[int, Input] = field(default_factory=dict)
    turned: dict[int, Turned] = field(default_factory=dict)
    held: dict[int, Step] = field(default_factory=dict)  # waits for the addition that reads it

    def run(self) -> list[Step]:
        for node in self.nodes:
            for value in node.values:
                self.readers.setdefault(value.id, []).append(node)
            for value in node.results:
                self.makers[value.id] = node
        for node in self.nodes:
            getattr(self, node.op)(node)
        return self.steps

    # ---- products and what they absorb

    def mul_mat(self, node: Node) -> None:
        self._product(node, node.op)

    def experts(self, node: Node) -> None:
        self._product(node, node.op, node.values[1:])

    def _product(self, node: Node, op: str, also: tuple[Value, ...] = ()) -> None:
        x = node.values[0]
        source = self.inputs.get(x.id) or Input("plain", x)
        step = Step(op, node, (*source.values, *also), node.results, source)
        self._emit_or_hold(step)

    def mix(self, node: Node) -> None:
        self._emit_or_hold(Step("mix", node, node.values, node.results))

    def _emit_or_hold(self, step: Step) -> None:
        readers = self.readers.get(step.writes[0].id, [])
        if step.op != "experts" and [reader.op for reader in readers] == ["add"]:
            self.held[step.writes[0].id] = step
        else:
            self.steps.append(step)

    def rms_norm(self, node: Node) -> None:
        x, result = node.values[0], node.result
        readers = self._reader_ops(result)
        eps, n_groups = node.numbers["eps"], node.numbers["n_groups"]
        if n_groups == 1 and self._feeds_products(result):
            self.inputs[result.id] = Input("rms_norm", x, None, node.weights[0], eps)
        elif readers == ["rope"] and self.readers[x.id] == [node]:
            self.turned[result.id] = Turned(x, node.weights[0], eps, None)
        elif readers == ["add"] and n_groups == 1:
            self.held[result.id] = Step("post_norm_add", node, (x,), (result,))
        else:
            self._plain(node)

    def gated(self, node: Node) -> None:
        transform = node.numbers["activation"]
        if transform in TRANSFORMS and self._feeds_products(node.result):
            self.inputs[node.result.id] = Input(transform, node.values[0], node.values[1])
        else:
            self._plain(node)

    def add(self, node: Node) -> None:
        x, y = node.values
        held = self.held.pop(y.id, None)
        other = self.held.pop(x.id, None)
        if held is None and other is not None:
            held, other, x = other, None, y
        if other is not None:
            self.steps.append(self._alone(other))
        if held is None:
            self._plain(node)
            return
        held.residual = x
        held.writes = node.results
        held.reads = (*held.reads, x)
        self.steps.append(held)

    @staticmethod
    def _alone(step: Step) -> Step:
        """Return a held step as one that adds to nothing."""
        if step.op == "post_norm_add":
            step.op = "rms_norm"
        return step

    # ---- attention

    def rope(self, node: Node) -> None:
        x = node.values[0]
        before = self.turned.pop(x.id, None)
        if self.readers[x.id] != [node]:
            raise InternalError("Only heads that nothing else reads can be rotated in place.")
        rotation = node.numbers["rotation"]
        if before is None:
            self.turned[node.result.id] = Turned(x, None, 0.0, rotation)
        else:
            self.turned[node.result.id] = Turned(before.x, before.norm, before.eps, rotation)

    def store(self, node: Node) -> None:
        k, v = node.values
        q = self._query_of(node.numbers["layer"])
        turned_k = self.turned.pop(k.id, None) or Turned(k, None, 0.0, None)
        turned_q = None if q is None else self.turned.pop(q.id, None) or Turned(q, None, 0.0, None)
        reads = [turned_k.x, v] if turned_q is None else [turned_q.x, turned_k.x, v]
        writes = [k] if q is None else [q, k]
        step = Step("store", node, tuple(reads), tuple(writes), queries=turned_q, keys=turned_k)
        self.steps.append(step)

    def _query_of(self, layer: int) -> Value | None:
        """Return what the layer's attention reads, before any choice of rows."""
        for node in self.nodes:
            if node.op == "attend" and node.numbers["layer"] == layer:
                q = node.values[0]
                maker = self.makers[q.id]
                return maker.values[0] if maker.op == "rows" else q
        return None

    # ---- the others

    def embed(self, node: Node) -> None:
        readers = self.readers.get(node.result.id, [])
        if [reader.op for reader in readers] == ["scale"]:
            factor = readers[0].numbers["factor"]
            self.steps.append(Step("embed", node, (), readers[0].results, factor=factor))
        else:
            self._plain(node)

    def scale(self, node: Node) -> None:
        if self.makers[node.values[0].id].op != "embed" or self.readers[node.values[0].id] != [
            node
        ]:
            self._plain(node)

    def attend(self, node: Node) -> None:
        self._plain(node)

    def rows(self, node: Node) -> None:
        self._plain(node)

    def route(self, node: Node) -> None:
        self._plain(node)

    def softcap(self, node: Node) -> None:
        self._plain(node)

    def _plain(self, node: Node) -> None:
        self.steps.append(Step(node.op, node, node.values, node.results))

    def _reader_ops(self, value: Value) -> list[str]:
        return [reader.op for reader in self.readers.get(value.id, [])]

    def _feeds_products(self, value: Value) -> bool:
        """Whether only products read the value, and only as their x."""
        readers = self.readers.get(value.id, [])
        return bool(readers) and all(
            reader.op in _PRODUCTS and reader.values.count(value) == 1 and reader.values[0] == value
            for reader in readers
        )


def fuse(graph: Graph, *, has_outputs: bool) -> list[Step]:
    """Return the steps of a graph; without outputs only what fills the memory is kept."""
    return _Fuser(_needed(graph, has_outputs)).run()


def _needed(graph: Graph, has_outputs: bool) -> list[Node]:
    """Return the nodes that the answer or the memory depends on, in order."""
    wanted: set[int] = {graph.answer.id} if has_outputs and graph.answer else set()
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        is_kept = node.op == "store" or any(value.id in wanted for value in node.results)
        if is_kept and (has_outputs or not _is_late(node.results)):
            kept.append(node)
            wanted.update(value.id for value in node.values)
    return kept[::-1]


def _is_late(values: Iterable[Value]) -> bool:
    return any(value.rows == OUTPUTS for value in values)
