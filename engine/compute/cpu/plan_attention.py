"""Kernel calls of attention: cos and sin of a rotation, the store of K and V, the attention."""

from typing import Any

from engine.compute.cpu.arena import Buffer
from engine.compute.cpu.call_list import CallList
from engine.compute.cpu.fuse import Step, Turned
from engine.compute.cpu.places import MANY
from engine.compute.graph import TOKENS, Rotation
from engine.errors import InternalError
from engine.native.buffers import f32_bits


def plan_rope_tables(calls: CallList) -> None:
    """Write the calls that compute cos and sin of every row, once for each rotation."""
    for step in calls.places.steps:
        for turned in step.turned:
            if turned.rotation is not None and turned.rotation not in calls.tables:
                _rope_table(calls, turned.rotation)


def _rope_table(calls: CallList, rotation: Rotation) -> None:
    n_bytes = calls.places.capacity(TOKENS) * 2 * rotation.n_rot * 4
    table = calls.tables[rotation] = Buffer(n_bytes)
    words = {
        "batch": calls.blocks.batch(TOKENS),
        "inv_freq": calls.workspace.frequencies(rotation),
        "n_rot": rotation.n_rot,
        "magnitude": f32_bits(rotation.magnitude),
        "neox": rotation.layout == "neox",
        "table": table,
    }
    calls.add("pointwise/rope_table", (), (table,), words)


def plan_store(calls: CallList, step: Step) -> None:
    """Write the call that turns q and k in place and fills the cells of K and V."""
    pages = calls.workspace.pages[step.node.numbers["layer"]]
    q, k, v = step.queries, step.keys, step.node.values[1]
    if k is None:
        raise InternalError("A store has no keys.")
    _check_alike(q, k)
    words: dict[str, Any] = {
        "batch": calls.blocks.batch(TOKENS),
        "pool": calls.blocks.pool(TOKENS, pages.i_pool),
        "q": 0,
        "ldq": 0,
        "n_head": 0,
        "q_norm": 0,
        "k_norm": calls.workspace.vector(k.norm),
        "eps": f32_bits(k.eps),
        "table": 0,
        "n_rot": 0,
        "neox": 0,
        **calls.row_words(k.x, "k", "ldk"),
        **calls.row_words(v, "v", "ldv"),
        **pages.words(),
    }
    if q is not None:
        words |= calls.row_words(q.x, "q", "ldq")
        words["n_head"] = q.x.width // pages.head_size_k
        words["q_norm"] = calls.workspace.vector(q.norm)
    if k.rotation is not None:
        words["table"] = calls.tables[k.rotation]
        words["n_rot"] = k.rotation.n_rot
        words["neox"] = k.rotation.layout == "neox"
    reads = tuple(calls.places.of(value) for value in step.reads)
    tables = (words["table"],) if k.rotation is not None else ()
    written = tuple(calls.places.of(value) for value in step.writes)
    kernel = f"attention.{pages.kv_types}/store"
    calls.add(kernel, (*reads, *tables), (*written, _cells(step)), words)


def _check_alike(q: Turned | None, k: Turned) -> None:
    if q is not None and (q.rotation != k.rotation or (q.norm and k.norm and q.eps != k.eps)):
        raise InternalError("The queries of a layer are not turned as its keys are.")


def plan_attend(calls: CallList, step: Step) -> None:
    """Write the calls of attention: whole tiles per thread, or a few rows split over threads."""
    (q,), (result,), numbers = step.reads, step.writes, step.node.numbers
    pages = calls.workspace.pages[numbers["layer"]]
    words = {
        "batch": calls.blocks.batch(q.rows),
        "pool": calls.blocks.pool(q.rows, pages.i_pool),
        **calls.row_words(q, "q", "ldq"),
        "n_head": numbers["n_heads"],
        "scale": f32_bits(numbers["scale"]),
        "softcap": 0,
        "window": pages.window,
        "sinks": 0,
        **pages.words(),
        **calls.row_words(result, "out", "ldo"),
        **calls.share_words(),
    }
    unit, heads = f"attention.{pages.kv_types}", calls.places.of(q)
    reads, out = (heads, _cells(step)), calls.places.of(result)
    calls.prepared = None
    if calls.places.kinds[q.rows] == MANY:
        calls.add(f"{unit}/attend", reads, (out,), words)
        return
    words["partials"] = calls.workspace.partials
    calls.add(f"{unit}/attend_split", reads, ("partials", out), words)
    calls.add(f"{unit}/merge", ("partials", heads), (out,), words)


def _cells(step: Step) -> tuple[str, int]:
    """Return the mark under which the cells of a step's layer are read and written."""
    return ("cells", step.node.numbers["layer"])
