"""The kernels of one weight type: embed, gemv, multi, gemm and experts."""

from engine.compute.cpu.kernels import (
    embed,
    gemm,
    gemm_float,
    gemv,
    rows_float,
    rows_k,
    rows_nibble,
    rows_q8_0,
)
from engine.compute.cpu.kernels.formats import FORMATS

ROW_GROUPS = {
    **dict.fromkeys(("f32", "f16", "bf16"), rows_float.row_group),
    **dict.fromkeys(("q4_0", "q4_1", "q5_0", "q5_1"), rows_nibble.row_group),
    "q8_0": rows_q8_0.row_group,
    **dict.fromkeys(("q4_k", "q5_k", "q6_k"), rows_k.row_group),
}


def kernels(name):
    """Return the kernels of weight type `name`."""
    few = gemv.kernels(ROW_GROUPS[name](name))
    if name in FORMATS:
        form = FORMATS[name]
        return few | gemm.kernels(form) | embed.quantized(form)
    return few | gemm_float.kernels(name) | embed.floating(name)
