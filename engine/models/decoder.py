"""The decoder family: the graph of one forward pass, wired as the row says."""

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass

from engine.compute.graph import Graph, Value, Weight
from engine.compute.sink_rows import sink_rows
from engine.hparams import HParams
from engine.models import names
from engine.models.layers import Layer
from engine.models.spec import ArchSpec


def build_graph(
    spec: ArchSpec, hparams: HParams, layers: Sequence[Layer], found: Container[str]
) -> Graph:
    """Return the graph whose answer is the logits of the wanted rows: [outputs, n_vocab].

    `found` holds the names of the file's tensors: an optional one that is absent is left out.
    """
    wiring = _Wiring(Graph(), spec, hparams, found)
    graph = wiring.graph
    x = wiring.embedding()
    for i, layer in enumerate(layers):
        x = wiring.join(x, wiring.attention(i, layer, x), i, "post_attention_norm")
        x = wiring.join(x, wiring.feed_forward(i, layer, x), i, "post_ffw_norm")
    x = graph.rms_norm(graph.rows(x), wiring.vector(names.OUTPUT_NORM), hparams.rms_eps)
    graph.answer = graph.softcap(wiring.head(x), hparams.final_softcap)
    return sink_rows(graph)


def build_embedding_graph(
    spec: ArchSpec, hparams: HParams, layers: Sequence[Layer], found: Container[str]
) -> Graph:
    """Return the graph whose answer is the last hidden state: [outputs, n_embd]."""
    graph = build_graph(spec, hparams, layers, found)
    while graph.nodes[-1].op != "rms_norm":
        graph.nodes.pop()
    graph.answer = graph.nodes[-1].result
    return graph


@dataclass
class _Wiring:
    """The parts of a layer, each written as its formula reads. T tokens, D embedding."""

    graph: Graph
    spec: ArchSpec
    hparams: HParams
    found: Container[str]

    def embedding(self) -> Value:
        """Return the rows of the tokens: [T, D]."""
        table = Weight(names.TOKEN_EMBD, self.hparams.n_embd, self.hparams.n_vocab)
        factor = math.sqrt(self.hparams.n_embd) if self.spec.has_scaled_embedding else 1.0
        return self.graph.scale(self.graph.embed(table), factor)

    def attention(self, i: int, layer: Layer, x: Value) -> Value:
        """Return attention of layer i over everything its rows may see: [T, D]."""
        graph, spec, eps = self.graph, self.spec, self.hparams.rms_eps
        n = graph.rms_norm(x, self.vector(names.in_layer(i, "attn_norm")), eps)
        q, k, v = self._query_key_value(i, layer, n)
        if spec.has_qk_norm:
            q_norm = Weight(names.in_layer(i, "attn_q_norm"), layer.head_size_k)
            k_norm = Weight(names.in_layer(i, "attn_k_norm"), layer.head_size_k)
            q = graph.rms_norm(q, q_norm, eps, layer.n_head)
            k = graph.rms_norm(k, k_norm, eps, layer.n_head_kv)
        q = graph.rope(q, layer.n_head, layer.rotation)
        k = graph.rope(k, layer.n_head_kv, layer.rotation)
        graph.store(k, v, i)
        width = layer.n_head * layer.head_size_v
        numbers = {"n_heads": layer.n_head, "scale": layer.query_scale}
        heads = graph.attend(q, width, layer=i, **numbers)
        return self.project(i, "attn_output", heads, self.hparams.n_embd)

    def _query_key_value(self, i: int, layer: Layer, n: Value) -> tuple[Value, Value, Value]:
        sizes = (
            layer.n_head * layer.head_size_k,
            layer.n_head_kv * layer.head_size_k,
            layer.n_head_kv * layer.head_size_v,
        )
        if names.in_layer(i, "attn_qkv") in self.found:
            starts = (0, sizes[0], sizes[0] + sizes[1])
            q, k, v = (
                self.project(i, "attn_qkv", n, size, start)
                for size, start in zip(sizes, starts, strict=True)
            )
        else:
            q, k, v = (
                self.project(i, part, n, size)
                for size, part in zip(sizes, ("attn_q", "attn_k", "attn_v"), strict=True)
            )
        return q, k, v

    def feed_forward(self, i: int, layer: Layer, x: Value) -> Value:
        """Return down(activation(gate x) * up x), dense or by chosen experts: [T, D]."""
        graph, activation, embd = self.graph, self.spec.activation, self.hparams.n_embd
        n = graph.rms_norm(x, self.vector(names.in_layer(i, "ffn_norm")), self.hparams.rms_eps)
        if layer.experts is None:
            gate = self.project(i, "ffn_gate", n, layer.n_ff)
            up = self.project(i, "ffn_up", n, layer.n_ff)
            return self.project(i, "ffn_down", graph.gated(gate, up, activation), embd)
        experts = layer.experts
        scores = self.project(i, "ffn_gate_inp", n, experts.n_experts)
        chosen, shares = graph.route(
            scores,
            experts.n_used,
            gating=experts.gating,
            is_normalised=experts.is_normalised,
            scale=experts.scale,
        )
        gate_table, up_table = (
            Weight(names.in_layer(i, part), embd, experts.n_ff, n_parts=experts.n_experts)
            for part in ("ffn_gate_exps", "ffn_up_exps")
        )
        down_name = names.in_layer(i, "ffn_down_exps")
        down_table = Weight(down_name, experts.n_ff, embd, n_parts=experts.n_experts)
        gate, up = graph.experts(n, chosen, gate_table), graph.experts(n, chosen, up_table)
        down = graph.experts(graph.gated(gate, up, activation), chosen, down_table)
        return graph.mix(down, shares)

    def join(self, x: Value, branch: Value, i: int, post_norm: str) -> Value:
        """Return x + branch, the branch normalised before if the row says so."""
        if self.spec.has_post_norms:
            weight = self.vector(names.in_layer(i, post_norm))
            branch = self.graph.rms_norm(branch, weight, self.hparams.rms_eps)
        return self.graph.add_rows(x, branch)

    def head(self, x: Value) -> Value:
        """Return the logits of normalised rows; without a head of its own the model is tied."""
        name = names.OUTPUT if names.OUTPUT in self.found else names.TOKEN_EMBD
        return self.graph.mul_mat(x, Weight(name, self.hparams.n_embd, self.hparams.n_vocab))

    def project(self, i: int, part: str, x: Value, n_rows: int, first_row: int = 0) -> Value:
        """Return weight x, plus the bias if the file has one."""
        weight = Weight(names.in_layer(i, part), x.width, n_rows, first_row)
        bias_name = names.in_layer(i, part, "bias")
        bias = Weight(bias_name, 1, n_rows, first_row) if bias_name in self.found else None
        return self.graph.mul_mat(x, weight, bias)

    def vector(self, name: str) -> Weight:
        """Return a weight of one number per element of the embedding."""
        return Weight(name, self.hparams.n_embd)
