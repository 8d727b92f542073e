"""Kernel calls of products with weights: dense, by chosen experts, and rows of the embedding."""

from typing import Any

from engine.compute.cpu.arena import Buffer
from engine.compute.cpu.call_list import CallList
from engine.compute.cpu.fuse import Input, Step
from engine.compute.cpu.places import MANY, ONE, SOME
from engine.compute.cpu.signatures import (
    ROW_LAYOUTS,
    TILE_LAYOUTS,
    TRANSFORMS,
    has_wide_dots,
    tile_bytes,
)
from engine.compute.graph import TOKENS
from engine.errors import InternalError
from engine.native.buffers import f32_bits


def plan_embed(calls: CallList, step: Step) -> None:
    """Write the call that turns token ids into rows."""
    table, result = calls.workspace.table(step.node.weight), step.writes[0]
    words = {
        "batch": calls.blocks.batch(TOKENS),
        "w": table.address,
        "row_bytes": table.row_bytes,
        "n_in": result.width,
        "scale": f32_bits(step.factor),
        **calls.row_words(result, "out", "ldo"),
    }
    calls.add(f"matmul.{table.type}/embed", (), (calls.places.of(result),), words)


def plan_product(calls: CallList, step: Step) -> None:
    """Write the call of a dense product: one row, a few rows, or many by tiles."""
    source, result = _source(step), step.writes[0]
    weight, bias = step.node.weight, step.node.bias
    table = calls.workspace.table(weight)
    y = calls.places.of(result)
    words: dict[str, Any] = {
        "n_rows": calls.n_rows(result),
        "w": table.address,
        "row_bytes": table.row_bytes,
        "n_in": weight.n_columns,
        "n_out": weight.n_rows,
        "bias": calls.workspace.vector(bias),
        "add": step.residual is not None,
        **calls.row_words(result, "y", "ldy"),
        **calls.share_words(),
    }
    also = (y,) if step.residual is not None else ()
    unit, kind = f"matmul.{table.type}", calls.places.kinds[result.rows]
    if kind == MANY or (kind == SOME and not has_wide_dots(table.type)):
        tiles = _tiles(calls, source, weight.n_columns, TILE_LAYOUTS[table.type])
        calls.add(f"{unit}/gemm", (tiles, *also), (y,), {**words, "tiles": tiles})
        calls.prepared = None
        return
    kernel = "gemv" if kind == ONE else "multi"
    prepared = (kernel, ROW_LAYOUTS[table.type], _key(source))
    words |= _input_words(calls, source) | {"reuse": calls.prepared == prepared}
    reads = tuple(calls.places.of(value) for value in source.values)
    calls.add(f"{unit}/{kernel}", (*reads, *also), (y,), words)
    calls.prepared = prepared


def plan_experts(calls: CallList, step: Step) -> None:
    """Write the call in which every row multiplies by the experts that it chose."""
    source, chosen, result = _source(step), step.reads[-1], step.writes[0]
    weight, n_used = step.node.weight, step.node.numbers["n_used"]
    table = calls.workspace.table(weight)
    has_parts = n_used > 1 and source.x.width == weight.n_columns * n_used
    words = {
        "n_rows": calls.n_rows(result),
        "n_used": n_used,
        **calls.row_words(chosen, "ids", "ldi"),
        **_input_words(calls, source),
        "slot_x": 4 * weight.n_columns if has_parts else 0,
        "w": table.address,
        "row_bytes": table.row_bytes,
        "n_in": weight.n_columns,
        "n_out": weight.n_rows,
        "expert_bytes": table.part_bytes,
        "n_expert": weight.n_parts,
        "bias": 0,
        "bias_bytes": 0,
        "add": False,
        **calls.row_words(result, "y", "ldy"),
        "slot_y": 4 * weight.n_rows,
        **calls.share_words(),
    }
    reads = tuple(calls.places.of(value) for value in step.reads)
    calls.add(f"experts.{table.type}/product", reads, (calls.places.of(result),), words)
    calls.prepared = None


def _source(step: Step) -> Input:
    if step.source is None:
        raise InternalError(f"The product of “{step.node.weight.name}” has no input.")
    return step.source


def _tiles(calls: CallList, source: Input, n_in: int, layout: str) -> Buffer:
    """Return the tiles of a product's input, made when first wanted."""
    key = (layout, *_key(source))
    if key in calls.tiles:
        return calls.tiles[key]
    tiles = calls.tiles[key] = Buffer(tile_bytes(n_in, calls.places.capacity(source.x.rows)))
    words = {
        "n_rows": calls.n_rows(source.x),
        **_input_words(calls, source),
        "n_in": n_in,
        "tiles": tiles,
        **calls.share_words(),
    }
    kernel = "matmul.input/arrange"
    if layout != "float":
        kernel, words["block"] = "matmul.input/quantize", int(layout.removeprefix("block"))
    reads = tuple(calls.places.of(value) for value in source.values)
    calls.add(kernel, reads, (tiles,), words)
    return tiles


def _input_words(calls: CallList, source: Input) -> dict[str, Any]:
    second = {"x2": 0, "ldx2": 0}
    if source.x2 is not None:
        second = calls.row_words(source.x2, "x2", "ldx2")
    return {
        "transform": TRANSFORMS.index(source.transform),
        **calls.row_words(source.x),
        **second,
        "norm": calls.workspace.vector(source.norm),
        "eps": f32_bits(source.eps),
    }


def _key(source: Input) -> tuple:
    """Return what makes two inputs the same."""
    norm = source.norm.name if source.norm else ""
    return (source.transform, *(value.id for value in source.values), norm)
