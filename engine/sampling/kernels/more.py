"""The unit "sampling.more": samplers that few chains use, compiled apart so that nobody waits."""

from engine.sampling.kernels.dry import dry
from engine.sampling.kernels.infill import infill
from engine.sampling.kernels.shape import dynamic_temperature, top_n_sigma, typical, xtc
from engine.sampling.kernels.surprise import adaptive_p, mirostat, mirostat_v2


def kernels():
    """Return the kernels of the unit."""
    found = [adaptive_p, dry, dynamic_temperature, infill, mirostat, mirostat_v2]
    return {kernel.__name__: kernel for kernel in [*found, top_n_sigma, typical, xtc]}
