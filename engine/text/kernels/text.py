"""The kernels of the unit "text": what merging vocabularies need, and nothing else."""

from engine.text.kernels.map_order import map_order
from engine.text.kernels.merge import merge
from engine.text.kernels.partition import candidates, partition
from engine.text.kernels.spelling import pieces, spell
from engine.text.kernels.strings import find, index, joints


def kernels():
    """Return the kernels of the unit."""
    return {
        "candidates": candidates,
        "find": find,
        "index": index,
        "joints": joints,
        "map_order": map_order,
        "merge": merge,
        "partition": partition,
        "pieces": pieces,
        "spell": spell,
    }
