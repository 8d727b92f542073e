"""From a graph to the tapes of one context: a tape per pair of row kinds, made when first needed.

A pair says how many tokens go in (one, few, some, many) and how many rows come out (none also).
One row is a `gemv`, a few rows read each weight once (`multi`), many go through tiles; some go
the way that is faster with the type of each weight.
"""

from collections.abc import Callable

from engine.compute.cpu import plan_attention, plan_products, plan_rows
from engine.compute.cpu.arena import place_buffers
from engine.compute.cpu.call_list import CallList
from engine.compute.cpu.fuse import Step, fuse
from engine.compute.cpu.places import MANY, NONE, Places, row_kind
from engine.compute.cpu.tape import Addresses, KernelCall, Tape
from engine.compute.cpu.workspace import Workspace
from engine.compute.graph import OUTPUTS, TOKENS, Graph

STEPS: dict[str, Callable[[CallList, Step], None]] = {
    "add": plan_rows.plan_add,
    "attend": plan_attention.plan_attend,
    "embed": plan_products.plan_embed,
    "experts": plan_products.plan_experts,
    "gated": plan_rows.plan_gated,
    "mix": plan_rows.plan_mix,
    "mul_mat": plan_products.plan_product,
    "post_norm_add": plan_rows.plan_post_norm_add,
    "rms_norm": plan_rows.plan_rms_norm,
    "route": plan_rows.plan_route,
    "rows": plan_rows.plan_gather,
    "scale": plan_rows.plan_scale,
    "softcap": plan_rows.plan_softcap,
    "store": plan_attention.plan_store,
}


def plan_calls(
    graph: Graph, workspace: Workspace, n_tokens: str, n_outputs: str
) -> list[KernelCall]:
    """Return the kernel calls of a graph for so many tokens and wanted rows (row kinds)."""
    steps = fuse(graph, has_outputs=n_outputs != NONE)
    kinds = {TOKENS: n_tokens, OUTPUTS: n_outputs}
    places = Places(steps, graph.answer, kinds, workspace.n_ubatch)
    calls = CallList(workspace, places)
    plan_attention.plan_rope_tables(calls)
    for step in places.steps:
        STEPS[step.op](calls, step)
    return calls.calls


class Tapes:
    """The tapes of one graph over one workspace; `addresses` are those of the kernels."""

    def __init__(self, graph: Graph, workspace: Workspace, addresses: Addresses) -> None:
        self._graph = graph
        self._workspace = workspace
        self._addresses = addresses
        self._made: dict[tuple[str, str], Tape] = {}

    def find(self, n_tokens: int, n_outputs: int) -> Tape:
        """Return the tape for so many tokens and wanted rows."""
        kinds = row_kind(n_tokens), row_kind(n_outputs)
        if kinds not in self._made:
            self._reserve(kinds[0])
            self._made[kinds] = self._make(*kinds)
        return self._made[kinds]

    def _make(self, n_tokens: str, n_outputs: str) -> Tape:
        calls = plan_calls(self._graph, self._workspace, n_tokens, n_outputs)
        n_bytes = place_buffers([call.touch for call in calls])
        return Tape(calls, self._addresses, self._workspace.arena_of(n_bytes))

    def _reserve(self, n_tokens: str) -> None:
        """Take the memory of the largest tape first, so that the others fit into it."""
        if n_tokens == MANY and not any(kind == MANY for kind, _ in self._made):
            calls = plan_calls(self._graph, self._workspace, MANY, MANY)
            self._workspace.arena_of(place_buffers([call.touch for call in calls]))
