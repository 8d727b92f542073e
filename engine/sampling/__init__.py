"""From logits to one token: the candidates, the samplers that edit them, the chain of both.

Reading order: `samplers` (what there is, as people know it), `chain` (the way in), `program`
(parameters to steps), `run` (the memory of one row) and `kernels` (the samplers themselves).
`words` is what Python and kernels agree on. A sampler is one function in `kernels`, one row in
`samplers`, one naive twin in the tests. A name is imported when it is first used: a window that
only shows sliders needs neither NumPy nor compiled code.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.sampling.chain import SamplerChain as SamplerChain
    from engine.sampling.probabilities import Ranking as Ranking
    from engine.sampling.probabilities import RowRanker as RowRanker
    from engine.sampling.probabilities import rank_after as rank_after
    from engine.sampling.run import Candidates as Candidates
    from engine.sampling.samplers import SAMPLERS as SAMPLERS
    from engine.sampling.samplers import SAMPLING_SETTINGS as SAMPLING_SETTINGS
    from engine.sampling.samplers import sampler_order as sampler_order
    from engine.sampling.trace import Stage as Stage

_HOME = {
    "Candidates": "run",
    "rank_after": "probabilities",
    "Ranking": "probabilities",
    "RowRanker": "probabilities",
    "SamplerChain": "chain",
    "sampler_order": "samplers",
    "SAMPLERS": "samplers",
    "SAMPLING_SETTINGS": "samplers",
    "Stage": "trace",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    """Import a name of this room on first use."""
    if name not in _HOME:
        raise AttributeError(f"module “engine.sampling” has no name “{name}”")
    return getattr(importlib.import_module(f"engine.sampling.{_HOME[name]}"), name)
