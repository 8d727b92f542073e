"""The kernels of one weight type: embed, gemv, multi and gemm."""

from engine.compute.cpu.kernels import embed, gemm, gemm_float, gemv
from engine.compute.cpu.kernels.formats import FORMATS
from engine.compute.cpu.kernels.row_types import ROW_GROUPS


def kernels(name):
    """Return the kernels of weight type `name`."""
    few = gemv.kernels(ROW_GROUPS[name](name))
    if name in FORMATS:
        form = FORMATS[name]
        return few | gemm.kernels(form) | embed.quantized(form)
    return few | gemm_float.kernels(name) | embed.floating(name)
