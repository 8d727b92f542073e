"""What is compiled into one object file: unit name to kernel module and build arguments."""

from collections.abc import Collection
from dataclasses import dataclass

from engine.errors import InternalError, nearest


@dataclass(frozen=True)
class Unit:
    """A module with `kernels(*arguments) -> dict[str, function]`, and those arguments.

    `unrolls_loops` lets the optimizer unroll; without, a unit compiles a quarter faster, and loses
    nothing where the kernels spell out their inner steps.
    """

    module: str
    arguments: tuple[str, ...] = ()
    unrolls_loops: bool = True


FLOAT_TYPES = ("f32", "f16", "bf16")
MATMUL_TYPES = (
    *FLOAT_TYPES,
    *("q4_0", "q4_1", "q5_0", "q5_1", "q8_0"),
    *("q4_k", "q5_k", "q6_k"),
)

# Types of K and V in memory, in any pair; a row of kernels/kv_types.py each.
KV_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_0", "q5_1", "q4_0", "q4_1", "iq4_nl")

UNITS: dict[str, Unit] = {
    **{
        f"attention.{k}.{v}": Unit("engine.compute.cpu.kernels.attention", (k, v), False)
        for k in KV_TYPES
        for v in KV_TYPES
    },
    **{
        f"matmul.{t}": Unit("engine.compute.cpu.kernels.matmul", (t,), t in FLOAT_TYPES)
        for t in MATMUL_TYPES
    },
    **{f"experts.{t}": Unit("engine.compute.cpu.kernels.experts", (t,)) for t in MATMUL_TYPES},
    "matmul.input": Unit("engine.compute.cpu.kernels.tiles"),
    "pointwise": Unit("engine.compute.cpu.kernels.pointwise", (), False),
    "sampling": Unit("engine.sampling.kernels.sampling"),
    "sampling.more": Unit("engine.sampling.kernels.more"),
    "team": Unit("engine.compute.cpu.kernels.team"),
    "text": Unit("engine.text.kernels.text"),
    "text.more": Unit("engine.text.kernels.more"),
    "selftest": Unit("engine.native.kernels.selftest"),
}


def find(name: str) -> Unit:
    """Return the unit called `name`; an unknown name raises InternalError."""
    unit = UNITS.get(name)
    if unit is None:
        raise InternalError(f"There is no kernel unit “{name}”.{nearest(name, UNITS)}")
    return unit


def companions(names: Collection[str]) -> tuple[str, ...]:
    """Return the units that are soon wanted beside those of a whole model, else nothing.

    They are compiled along with it, because one build fills the cores better than two.
    """
    is_model = {"team", "pointwise", "matmul.input"} <= set(names)
    return ("sampling", "text") if is_model else ()


def is_small(name: str) -> bool:
    """Return whether a unit compiles in a moment: it goes last, so that children end together."""
    return name in ("matmul.input", "team", "text.more")
