"""The kernels of the unit "text.more": the families that search instead of merging."""

from engine.text.kernels.longest import longest
from engine.text.kernels.unigram import normalize, unigram


def kernels():
    """Return the kernels of the unit."""
    return {"longest": longest, "normalize": normalize, "unigram": unigram}
