"""OPS: every operation a model may ask for, with its operands and what each one means.

A twin of every row, in plain NumPy, is in `tests/reference/graph_twin.py`.
"""

from dataclasses import dataclass

from engine.errors import InternalError, nearest


@dataclass(frozen=True)
class Op:
    """One operation: the values and weights it reads, its numbers, and what it computes.

    `is_row_wise`: row t of the result depends on row t of each value and on nothing else, so the
    op may run on the wanted rows only.
    """

    name: str
    values: tuple[str, ...]
    weights: tuple[str, ...]  # a trailing "?" marks one that may be absent
    numbers: tuple[str, ...]
    is_row_wise: bool
    meaning: str


_ROWS = (
    Op("embed", (), ("table",), (), False, "y[t] = table[token of row t]"),
    Op("scale", ("x",), (), ("factor",), True, "y = x * factor"),
    Op(
        "rms_norm",
        ("x",),
        ("weight",),
        ("eps", "n_groups"),
        True,
        "each of n_groups equal parts of a row: y = x / sqrt(mean(x²) + eps) * weight",
    ),
    Op("mul_mat", ("x",), ("weight", "bias?"), (), True, "y[t] = weight x[t] + bias"),
    Op("add", ("x", "y"), (), (), True, "x + y"),
    Op("gated", ("gate", "up"), (), ("activation",), True, "activation(gate) * up"),
    Op("softcap", ("x",), (), ("cap",), True, "cap * tanh(x / cap)"),
    Op("rope", ("x",), (), ("n_heads", "rotation"), False, "rotate each head by its position"),
    Op("store", ("k", "v"), (), ("layer",), False, "put K and V into the cells of the rows"),
    Op(
        "attend",
        ("q",),
        (),
        ("layer", "n_heads", "scale"),
        False,
        "softmax(scale q·K) V over the visible cells of the row's sequence",
    ),
    Op("rows", ("x",), (), (), False, "the rows whose result is wanted, in their order"),
    Op(
        "route",
        ("scores",),
        (),
        ("n_used", "gating", "is_normalised", "scale"),
        True,
        "per row the n_used best experts and their shares (divided by their sum) * scale",
    ),
    Op(
        "experts",
        ("x", "chosen"),
        ("weight",),
        ("n_used",),
        True,
        "part j of a row: weight[chosen[t, j]] x[t], or x[t, j] when x has n_used parts",
    ),
    Op(
        "mix",
        ("x", "shares"),
        (),
        ("n_used",),
        True,
        "sum over the n_used parts of a row, each times its share",
    ),
)

OPS: dict[str, Op] = {row.name: row for row in _ROWS}


def find_op(name: str) -> Op:
    """Return the row of an op; an unknown name raises InternalError."""
    row = OPS.get(name)
    if row is None:
        raise InternalError(f"There is no op “{name}”.{nearest(name, OPS)}")
    return row
