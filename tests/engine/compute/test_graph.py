"""The graph refuses operands that do not fit, and computes only the rows that are wanted."""

import pytest

from engine.compute.graph import OUTPUTS, TOKENS, Graph, Rotation, Weight
from engine.compute.ops import OPS, find_op
from engine.compute.sink_rows import sink_rows
from engine.errors import InternalError
from tests.reference.graph_twin import GraphTwin

ROTATION = Rotation("norm", 4, (1.0, 0.1))


def small_graph() -> Graph:
    """One layer whose last rows are taken at the end, as a model file writes it."""
    graph = Graph()
    x = graph.embed(Weight("table", 8, 5))
    n = graph.rms_norm(x, Weight("norm", 8), 1e-5)
    q = graph.rope(graph.mul_mat(n, Weight("q", 8, 8)), 2, ROTATION)
    k = graph.rope(graph.mul_mat(n, Weight("k", 8, 8)), 2, ROTATION)
    graph.store(k, graph.mul_mat(n, Weight("v", 8, 8)), 0)
    a = graph.attend(q, 8, layer=0, n_heads=2, scale=0.5)
    x = graph.add_rows(x, graph.mul_mat(a, Weight("o", 8, 8)))
    f = graph.rms_norm(x, Weight("norm", 8), 1e-5)
    x = graph.add_rows(x, graph.mul_mat(f, Weight("down", 8, 8)))
    graph.answer = graph.mul_mat(graph.rows(x), Weight("head", 8, 5))
    return graph


def test_every_op_has_a_twin():
    assert [name for name in OPS if not callable(getattr(GraphTwin, name, None))] == []


def test_an_unknown_op_names_the_nearest():
    with pytest.raises(InternalError, match="mul_mat"):
        find_op("mul_mats")


def test_widths_that_do_not_fit_are_refused():
    graph = Graph()
    x = graph.embed(Weight("table", 8, 5))
    with pytest.raises(InternalError, match="fit"):
        graph.mul_mat(x, Weight("w", 9, 3))


def test_a_missing_number_is_refused():
    graph = Graph()
    x = graph.embed(Weight("table", 8, 5))
    with pytest.raises(InternalError, match="attend"):
        graph.attend(x, 8, layer=0, n_heads=2)


def test_rows_are_taken_right_after_the_last_keys_are_stored():
    graph = sink_rows(small_graph())
    ops = [(node.op, node.results[0].rows) for node in graph.nodes if node.results]
    late = [op for op, rows in ops if rows == OUTPUTS]
    assert late.count("rows") == 2  # the queries and the residual
    assert {"attend", "mul_mat", "add", "rms_norm"} <= set(late)
    early = [op for op, rows in ops if rows == TOKENS]
    assert early == ["embed", "rms_norm", "mul_mat", "rope", "mul_mat", "rope", "mul_mat"]


def test_sinking_rows_keeps_every_operand_made_before_it_is_read():
    graph = sink_rows(small_graph())
    made = set()
    for node in graph.nodes:
        assert all(value.id in made for value in node.values)
        made.update(value.id for value in node.results)
    assert graph.answer.id in made
