"""Places: which buffer each value of a plan has, and which steps may write over what they read."""

from collections.abc import Sequence
from dataclasses import replace

from engine.compute.cpu.arena import Buffer
from engine.compute.cpu.fuse import Step
from engine.compute.cpu.signatures import FEW_ROWS, MULTI_ROWS
from engine.compute.cpu.tape import Answer
from engine.compute.graph import Node, Value

NONE, ONE, FEW, SOME, MANY = "none", "one", "few", "some", "many"
_LINE = 64
_OVERWRITING = ("scale", "softcap", "rms_norm")  # kernels whose out may be x


def row_kind(n_rows: int) -> str:
    """Return which kind of kernels serves so many rows."""
    if n_rows <= 1:
        return ONE if n_rows else NONE
    if n_rows <= FEW_ROWS:
        return FEW
    return SOME if n_rows <= MULTI_ROWS else MANY


class Places:
    """Buffers of values: a step that adds to, or overwrites, a value read last shares its buffer.

    `kinds` tells for "tokens" and "outputs" rows how many there are (one, few, some, many).
    """

    def __init__(
        self, steps: Sequence[Step], answer: Value | None, kinds: dict[str, str], n_ubatch: int
    ) -> None:
        self.kinds = kinds
        self._n_rows = {ONE: 1, FEW: FEW_ROWS, SOME: MULTI_ROWS, MANY: n_ubatch}
        self._answer = answer
        self._same: dict[int, int] = {}
        self._buffers: dict[int, Buffer | Answer] = {}
        self.steps = self._share(steps)

    def of(self, value: Value) -> Buffer | Answer:
        """Return the buffer of a value: rows `stride` bytes apart."""
        root = self._root(value.id)
        if root not in self._buffers:
            if self._answer is not None and root == self._root(self._answer.id):
                self._buffers[root] = Answer()
            else:
                n_rows = self._n_rows[self.kinds[value.rows]]
                self._buffers[root] = Buffer(n_rows * self.stride(value))
        return self._buffers[root]

    def stride(self, value: Value) -> int:
        """Return the bytes from one row of a value to the next."""
        n_bytes = 4 * value.width
        if self._answer is not None and self._root(value.id) == self._root(self._answer.id):
            return n_bytes
        return -(-n_bytes // _LINE) * _LINE

    def capacity(self, rows: str) -> int:
        """Return how many rows a buffer of such rows holds."""
        return self._n_rows[self.kinds[rows]]

    def _root(self, value_id: int) -> int:
        while value_id in self._same:
            value_id = self._same[value_id]
        return value_id

    def _join(self, result: Value, x: Value) -> None:
        if self._root(result.id) != self._root(x.id):
            self._same[self._root(result.id)] = self._root(x.id)

    def _share(self, steps: Sequence[Step]) -> list[Step]:
        last_read: dict[int, int] = {}
        for i, step in enumerate(steps):
            for value in step.reads:
                last_read[value.id] = i
        shared: list[Step] = []
        for i, step in enumerate(steps):
            x = step.residual
            if x is not None:
                others = step.reads[: -step.reads[::-1].index(x) - 1]
                if last_read[x.id] == i and x not in others:
                    self._join(step.writes[0], x)
                else:
                    shared += _add_apart(step, x)
                    continue
            elif step.op == "store":
                for turned, result in zip(step.turned, step.writes, strict=True):
                    self._join(result, turned.x)
            elif step.op in _OVERWRITING and last_read[step.reads[0].id] == i:
                self._join(step.writes[0], step.reads[0])
            shared.append(step)
        return shared


def _add_apart(step: Step, residual: Value) -> list[Step]:
    """Return a step that adds as two: the residual is still wanted, so it stays as it is."""
    branch = step.node.result
    op = "rms_norm" if step.op == "post_norm_add" else step.op
    alone = replace(step, op=op, reads=step.reads[:-1], writes=(branch,), residual=None)
    node = Node("add", (residual, branch), (), {}, step.writes)
    return [alone, Step("add", node, node.values, step.writes)]
