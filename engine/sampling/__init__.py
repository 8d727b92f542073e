"""From logits to one token: the candidates, the samplers that edit them, the chain of both.

Reading order: `samplers` (what there is, as people know it), `chain` (the way in), `program`
(parameters to steps), `run` (the memory of one row) and `kernels` (the samplers themselves).
`words` is what Python and kernels agree on. A sampler is one function in `kernels`, one row in
`samplers`, one naive twin in the tests.
"""

from engine.sampling.chain import SamplerChain
from engine.sampling.probabilities import Ranking, RowRanker, rank_after
from engine.sampling.run import Candidates
from engine.sampling.samplers import SAMPLERS, SAMPLING_SETTINGS, sampler_order

__all__ = [
    "Candidates",
    "rank_after",
    "Ranking",
    "RowRanker",
    "SamplerChain",
    "sampler_order",
    "SAMPLERS",
    "SAMPLING_SETTINGS",
]
