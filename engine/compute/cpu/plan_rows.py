"""Kernel calls that work on rows alone: norms, sums, gates, caps, choices of rows and experts."""

from collections.abc import Sequence
from typing import Any

from engine.compute.cpu.call_list import CallList
from engine.compute.cpu.fuse import Step
from engine.compute.cpu.signatures import ACTIVATIONS, GATINGS
from engine.compute.graph import TOKENS, Value
from engine.native.buffers import f32_bits


def _add(
    calls: CallList,
    kernel: str,
    reads: Sequence[Value],
    writes: Sequence[Value],
    words: dict[str, Any],
) -> None:
    read = tuple(calls.places.of(value) for value in reads)
    written = tuple(calls.places.of(value) for value in writes)
    calls.add(f"pointwise/{kernel}", read, written, words)


def plan_gather(calls: CallList, step: Step) -> None:
    """Write the call that takes the wanted rows."""
    (x,), (result,) = step.reads, step.writes
    words = {
        "batch": calls.blocks.batch(TOKENS),
        **calls.row_words(x),
        "n": x.width,
        **calls.row_words(result, "out", "ldo"),
    }
    _add(calls, "gather", step.reads, step.writes, words)


def plan_rms_norm(calls: CallList, step: Step) -> None:
    """Write the call of a norm that no product could absorb."""
    (x,), (result,), numbers = step.reads, step.writes, step.node.numbers
    words = {
        "n_rows": calls.n_rows(x),
        **calls.row_words(x),
        "n": x.width // numbers["n_groups"],
        "n_groups": numbers["n_groups"],
        "group_stride": 0,
        "weight": calls.workspace.vector(step.node.weight),
        "bias": 0,
        "eps": f32_bits(numbers["eps"]),
        **calls.row_words(result, "out", "ldo"),
    }
    _add(calls, "rms_norm", step.reads, step.writes, words)


def plan_post_norm_add(calls: CallList, step: Step) -> None:
    """Write the call that normalises a branch and adds it to its residual."""
    branch, residual = step.reads
    words = {
        "n_rows": calls.n_rows(branch),
        **calls.row_words(branch, "y", "ldy"),
        "n": branch.width,
        "weight": calls.workspace.vector(step.node.weight),
        "eps": f32_bits(step.node.numbers["eps"]),
        **calls.row_words(residual),
    }
    _add(calls, "post_norm_add", step.reads, step.writes, words)


def plan_add(calls: CallList, step: Step) -> None:
    """Write the call of a sum that no product could absorb."""
    x, y = step.reads
    words = {
        "n_rows": calls.n_rows(x),
        **calls.row_words(x),
        **calls.row_words(y, "y", "ldy"),
        "n": x.width,
        **calls.row_words(step.writes[0], "out", "ldo"),
    }
    _add(calls, "add", step.reads, step.writes, words)


def plan_gated(calls: CallList, step: Step) -> None:
    """Write the call of a gate that no product could absorb."""
    gate, up = step.reads
    words = {
        "n_rows": calls.n_rows(gate),
        "activation": ACTIVATIONS.index(step.node.numbers["activation"]),
        **calls.row_words(gate, "gate", "ldg"),
        **calls.row_words(up, "up", "ldu"),
        "n": gate.width,
        **calls.row_words(step.writes[0], "out", "ldo"),
    }
    _add(calls, "activate", step.reads, step.writes, words)


def plan_scale(calls: CallList, step: Step) -> None:
    """Write the call that multiplies rows by a number."""
    _bent(calls, step, "scale", "factor", step.node.numbers["factor"])


def plan_softcap(calls: CallList, step: Step) -> None:
    """Write the call that bends large values towards a cap."""
    _bent(calls, step, "softcap", "cap", step.node.numbers["cap"])


def _bent(calls: CallList, step: Step, kernel: str, name: str, number: float) -> None:
    (x,), (result,) = step.reads, step.writes
    words = {
        "n_rows": calls.n_rows(x),
        **calls.row_words(x),
        "n": x.width,
        name: f32_bits(number),
        **calls.row_words(result, "out", "ldo"),
    }
    _add(calls, kernel, step.reads, step.writes, words)


def plan_route(calls: CallList, step: Step) -> None:
    """Write the call in which every row chooses its experts."""
    (scores,), numbers = step.reads, step.node.numbers
    words = {
        "n_rows": calls.n_rows(scores),
        **calls.row_words(scores, "logits", "ldl"),
        "n_expert": scores.width,
        "n_used": numbers["n_used"],
        "gating": GATINGS.index(numbers["gating"]),
        "bias": 0,
        "normalise": numbers["is_normalised"],
        "scale": f32_bits(numbers["scale"]),
        "n_group": 1,
        "n_group_used": 1,
        **calls.row_words(step.writes[0], "ids", "ldi"),
        **calls.row_words(step.writes[1], "weights", "ldw"),
    }
    _add(calls, "router", step.reads, step.writes, words)


def plan_mix(calls: CallList, step: Step) -> None:
    """Write the call that sums the products of a row's experts by their shares."""
    x, shares = step.reads[:2]
    result = step.writes[0]
    words = {
        "n_rows": calls.n_rows(x),
        **calls.row_words(x, "y", "ldy"),
        "lde": 4 * result.width,
        "n_used": step.node.numbers["n_used"],
        **calls.row_words(shares, "weights", "ldw"),
        "n": result.width,
        "add": step.residual is not None,
        **calls.row_words(result, "out", "ldo"),
    }
    _add(calls, "combine", step.reads, step.writes, words)
