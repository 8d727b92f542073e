"""All kernels of the unit "text"."""

from engine.text.kernels.longest import longest
from engine.text.kernels.map_order import map_order
from engine.text.kernels.merge import merge
from engine.text.kernels.partition import candidates, partition
from engine.text.kernels.spelling import pieces, spell
from engine.text.kernels.strings import find, index, joints
from engine.text.kernels.unigram import normalize, unigram


def kernels():
    """Return the kernels of the unit."""
    return {
        "candidates": candidates,
        "find": find,
        "index": index,
        "joints": joints,
        "longest": longest,
        "map_order": map_order,
        "merge": merge,
        "normalize": normalize,
        "partition": partition,
        "pieces": pieces,
        "spell": spell,
        "unigram": unigram,
    }
