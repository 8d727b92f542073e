"""The plain twin of every op of a graph: one node after the other in float32 NumPy."""

import gguf
import numpy as np
from gguf.quants import dequantize

from engine.compute.graph import Graph, Rotation, Weight


def read_weights(path) -> dict[str, np.ndarray]:
    """Return every tensor of a model file as float32, by the format's own library."""
    return {
        tensor.name: dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        for tensor in gguf.GGUFReader(path).tensors
    }


class GraphTwin:
    """Runs a graph; remembers K and V of every layer for the rows it has seen."""

    def __init__(self, graph: Graph, weights: dict[str, np.ndarray], windows: list[int]):
        self.graph = graph
        self.weights = weights
        self.windows = windows
        self.remembered: dict[int, list[np.ndarray]] = {}

    def run(self, tokens, positions, outputs, seq_ids=None) -> np.ndarray:
        """Return the answer [outputs, width] for rows of tokens at positions."""
        self.tokens = np.asarray(tokens)
        outputs = np.asarray(outputs, int)
        self.at = {"tokens": np.asarray(positions), "outputs": np.asarray(positions)[outputs]}
        ids = np.zeros(len(tokens), int) if seq_ids is None else np.asarray(seq_ids)
        self.ids = {"tokens": ids, "outputs": ids[outputs]}
        self.wanted = outputs
        values: dict[int, np.ndarray] = {}
        for node in self.graph.nodes:
            inputs = [values[value.id] for value in node.values]
            tables = [self.table(weight) for weight in node.weights]
            found = getattr(self, node.op)(node, *inputs, *tables)
            found = found if isinstance(found, tuple) else (found,)
            for value, array in zip(node.results, found, strict=False):
                assert array.shape == (len(self.at[value.rows]), value.width)
                values[value.id] = array
        return values[self.graph.answer.id]

    def table(self, weight: Weight | None):
        if weight is None:
            return None
        whole = self.weights[weight.name]
        if weight.n_parts > 1 or whole.ndim == 3:
            return whole
        rows = whole.reshape(-1, weight.n_columns)
        return rows[weight.first_row : weight.first_row + weight.n_rows]

    def embed(self, node, table):
        return table[self.tokens]

    def scale(self, node, x):
        return x * np.float32(node.numbers["factor"])

    def rms_norm(self, node, x, weight):
        parts = x.reshape(len(x), node.numbers["n_groups"], -1)
        mean = (parts.astype(np.float64) ** 2).mean(-1, keepdims=True)
        parts = parts / np.sqrt(mean + node.numbers["eps"]) * weight.reshape(-1)
        return parts.reshape(x.shape).astype(np.float32)

    def mul_mat(self, node, x, weight, bias=None):
        return x @ weight.T + (0 if bias is None else bias.reshape(-1))

    def add(self, node, x, y):
        return x + y

    def gated(self, node, gate, up):
        if node.numbers["activation"] == "silu":
            return gate / (1 + np.exp(-gate)) * up
        inner = np.float32(0.7978845608) * (gate + np.float32(0.044715) * gate**3)
        return np.float32(0.5) * gate * (1 + np.tanh(inner)) * up

    def softcap(self, node, x):
        return node.numbers["cap"] * np.tanh(x / node.numbers["cap"])

    def rope(self, node, x):
        rotation: Rotation = node.numbers["rotation"]
        heads = x.reshape(len(x), node.numbers["n_heads"], -1).astype(np.float64)
        angles = self.at[node.values[0].rows][:, None] * np.array(rotation.frequencies)
        cos, sin = (f(angles)[:, None] * rotation.magnitude for f in (np.cos, np.sin))
        n, turned = rotation.n_rot, heads.copy()
        is_norm = rotation.layout == "norm"
        first, second = (
            (slice(0, n, 2), slice(1, n, 2)) if is_norm else (slice(0, n // 2), slice(n // 2, n))
        )
        turned[..., first] = heads[..., first] * cos - heads[..., second] * sin
        turned[..., second] = heads[..., first] * sin + heads[..., second] * cos
        return turned.reshape(x.shape).astype(np.float32)

    def store(self, node, k, v):
        known = self.remembered.setdefault(node.numbers["layer"], [])
        known.extend(zip(k, v, self.at["tokens"], self.ids["tokens"], strict=True))
        return ()

    def attend(self, node, q):
        n_heads, layer = node.numbers["n_heads"], node.numbers["layer"]
        rows = node.values[0].rows
        k, v, at, ids = (np.array(part) for part in zip(*self.remembered[layer], strict=True))
        q = q.reshape(len(q), n_heads, -1)
        k, v = k.reshape(len(k), -1, q.shape[-1]), v.reshape(len(v), -1)
        group = n_heads // k.shape[1]
        v = v.reshape(len(v), k.shape[1], -1)
        k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
        scores = np.einsum("qhd,khd->hqk", q, k) * np.float32(node.numbers["scale"])
        distance = self.at[rows][:, None] - at[None]
        seen = (distance >= 0) & (self.ids[rows][:, None] == ids[None])
        if self.windows[layer]:
            seen &= distance < self.windows[layer]
        scores = np.where(seen, scores, -np.inf)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        return np.einsum("hqk,khd->qhd", shares, v).reshape(len(q), -1)

    def rows(self, node, x):
        return x[self.wanted]

    def route(self, node, scores):
        numbers = node.numbers
        assert numbers["gating"] == "softmax"
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        chosen = np.argsort(-shares, axis=-1, kind="stable")[:, : numbers["n_used"]]
        picked = np.take_along_axis(shares, chosen, -1)
        if numbers["is_normalised"]:
            picked = picked / np.maximum(picked.sum(-1, keepdims=True), 6.1035e-5)
        return chosen, picked * numbers["scale"]

    def experts(self, node, x, chosen, tables):
        n_used = node.numbers["n_used"]
        parts = x.reshape(len(x), -1, tables.shape[-1])
        products = [
            [tables[chosen[t, j]] @ parts[t, j % parts.shape[1]] for j in range(n_used)]
            for t in range(len(x))
        ]
        return np.array(products, np.float32).reshape(len(x), -1)

    def mix(self, node, x, shares):
        parts = x.reshape(len(x), shares.shape[1], -1)
        return (parts * shares[..., None]).sum(1)
