"""The graph of one forward pass: ops over named tensors, without device, type or thread.

A value is a table of f32 (or, for chosen experts, of int32) with one row per token. Rows are
"tokens", all rows of the ubatch, or "outputs", only those whose logits are wanted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from engine.compute.ops import find_op
from engine.errors import InternalError

TOKENS = "tokens"
OUTPUTS = "outputs"


@dataclass(frozen=True)
class Rotation:
    """Rotary positions of some heads: pair i turns by position * frequency i.

    `layout` is "norm" (pairs 2i, 2i+1) or "neox" (pairs i, i + n_rot/2); elements from n_rot on
    pass unchanged. `frequencies` are n_rot/2 numbers with every scaling worked in; cos and sin
    are multiplied by `magnitude`.
    """

    layout: str
    n_rot: int
    frequencies: tuple[float, ...]
    magnitude: float = 1.0


@dataclass(frozen=True)
class Weight:
    """A tensor of the model file: `n_rows` rows of `n_columns` from `first_row` on.

    A bias is a table of one column. `n_parts` > 1 says that the tensor is a stack of that many
    such tables (experts).
    """

    name: str
    n_columns: int
    n_rows: int = 1
    first_row: int = 0
    n_parts: int = 1


@dataclass(frozen=True)
class Value:
    """The result of a node: [rows, width]."""

    id: int
    rows: str
    width: int
    is_float: bool = True


@dataclass(frozen=True)
class Node:
    """One op with its operands; `numbers` are the op's constants."""

    op: str
    values: tuple[Value, ...]
    weights: tuple[Weight | None, ...]
    numbers: Mapping[str, Any]
    results: tuple[Value, ...]

    @property
    def result(self) -> Value:
        """The only result of the node."""
        (value,) = self.results
        return value

    @property
    def weight(self) -> Weight:
        """The first weight of the node."""
        if not self.weights or self.weights[0] is None:
            raise InternalError(f"This “{self.op}” has no weight.")
        return self.weights[0]

    @property
    def bias(self) -> Weight | None:
        """The second weight of the node, which may be absent."""
        return self.weights[1] if len(self.weights) > 1 else None


@dataclass
class Graph:
    """Nodes in an order in which they can be computed, and the value that is the answer."""

    nodes: list[Node] = field(default_factory=list)
    answer: Value | None = None
    n_values: int = 0

    def make_value(self, rows: str, width: int, is_float: bool = True) -> Value:
        """Return a value that no node has produced yet."""
        self.n_values += 1
        return Value(self.n_values - 1, rows, width, is_float)

    def add(
        self,
        op: str,
        values: tuple[Value, ...],
        widths: tuple[int, ...],
        weights: tuple[Weight | None, ...] = (),
        numbers: Mapping[str, Any] = MappingProxyType({}),
        rows: str | None = None,
    ) -> Node:
        """Append a node whose results have the given widths; operands are held against OPS."""
        row = find_op(op)
        required = sum(not name.endswith("?") for name in row.weights)
        present = len(values) == len(row.values) and len(weights) >= required
        if not present or set(numbers) != set(row.numbers) or len(weights) > len(row.weights):
            raise InternalError(f"The op “{op}” was given operands that it does not take.")
        rows = rows or (values[0].rows if values else TOKENS)
        results = tuple(
            self.make_value(rows, width, not (op == "route" and i == 0))
            for i, width in enumerate(widths)
        )
        self.nodes.append(Node(op, values, weights, MappingProxyType(dict(numbers)), results))
        return self.nodes[-1]

    # ---- one method per op, so that a model reads as its formula

    def embed(self, table: Weight) -> Value:
        """Return the table rows of the tokens: [tokens, n_columns]."""
        return self.add("embed", (), (table.n_columns,), (table,)).result

    def scale(self, x: Value, factor: float) -> Value:
        """Return x * factor; x itself when the factor is 1."""
        if factor == 1.0:
            return x
        return self.add("scale", (x,), (x.width,), numbers={"factor": factor}).result

    def rms_norm(self, x: Value, weight: Weight, eps: float, n_groups: int = 1) -> Value:
        """Return x over its root mean square in each of `n_groups` parts, times the weight."""
        self._check(x.width == weight.n_columns * n_groups, "rms_norm", weight.name)
        numbers = {"eps": eps, "n_groups": n_groups}
        return self.add("rms_norm", (x,), (x.width,), (weight,), numbers).result

    def mul_mat(self, x: Value, weight: Weight, bias: Weight | None = None) -> Value:
        """Return weight x + bias: [rows, weight.n_rows]."""
        self._check(x.width == weight.n_columns, "mul_mat", weight.name)
        return self.add("mul_mat", (x,), (weight.n_rows,), (weight, bias)).result

    def add_rows(self, x: Value, y: Value) -> Value:
        """Return x + y."""
        self._check(x.width == y.width and x.rows == y.rows, "add", f"value {x.id}")
        return self.add("add", (x, y), (x.width,)).result

    def gated(self, gate: Value, up: Value, activation: str) -> Value:
        """Return activation(gate) * up."""
        self._check(gate.width == up.width, "gated", f"value {gate.id}")
        numbers = {"activation": activation}
        return self.add("gated", (gate, up), (gate.width,), numbers=numbers).result

    def softcap(self, x: Value, cap: float) -> Value:
        """Return cap * tanh(x / cap); x itself when the cap is 0."""
        if cap == 0.0:
            return x
        return self.add("softcap", (x,), (x.width,), numbers={"cap": cap}).result

    def rope(self, x: Value, n_heads: int, rotation: Rotation) -> Value:
        """Return each of the heads of x rotated by the position of its row."""
        numbers = {"n_heads": n_heads, "rotation": rotation}
        return self.add("rope", (x,), (x.width,), numbers=numbers).result

    def store(self, k: Value, v: Value, layer: int) -> None:
        """Put K and V of every row into its cell of the layer's memory."""
        self.add("store", (k, v), (), numbers={"layer": layer})

    def attend(self, q: Value, width: int, **numbers: Any) -> Value:
        """Return attention of q over a layer's memory: [rows, width = n_heads * V head size]."""
        return self.add("attend", (q,), (width,), numbers=numbers).result

    def rows(self, x: Value) -> Value:
        """Return the wanted rows of x: [outputs, width]."""
        return self.add("rows", (x,), (x.width,), rows=OUTPUTS).result

    def route(self, scores: Value, n_used: int, **numbers: Any) -> tuple[Value, Value]:
        """Return the chosen experts (int32) and their shares, both [rows, n_used]."""
        widths, numbers = (n_used, n_used), {"n_used": n_used, **numbers}
        chosen, shares = self.add("route", (scores,), widths, numbers=numbers).results
        return chosen, shares

    def experts(self, x: Value, chosen: Value, weight: Weight) -> Value:
        """Return the products of the chosen experts: [rows, n_used * weight.n_rows]."""
        n_used = chosen.width
        width = n_used * weight.n_rows
        fits = x.width in (weight.n_columns, weight.n_columns * n_used)
        self._check(fits, "experts", weight.name)
        return self.add("experts", (x, chosen), (width,), (weight,), {"n_used": n_used}).result

    def mix(self, x: Value, shares: Value) -> Value:
        """Return the parts of each row summed by their shares: [rows, x.width / n_used]."""
        n_used = shares.width
        widths, numbers = (x.width // n_used,), {"n_used": n_used}
        return self.add("mix", (x, shares), widths, numbers=numbers).result

    @staticmethod
    def _check(fits: bool, op: str, what: str) -> None:
        if not fits:
            raise InternalError(f"The operands of “{op}” do not fit together at {what}.")
