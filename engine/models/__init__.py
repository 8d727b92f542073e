"""How an architecture is described, and how its forward pass is wired from operations.

Read in this order: `spec.py` (what an architecture may declare), `catalog.py` (one row each),
`layers.py` (a row and the numbers of a file, layer by layer), `weights.py` (the tensors that this
implies), `decoder.py` (the graph).
"""

from engine.models.catalog import ARCHITECTURES, find_architecture
from engine.models.decoder import build_embedding_graph, build_graph
from engine.models.layers import Layer, describe_layers, kv_layers
from engine.models.spec import ArchSpec
from engine.models.weights import Expected, check_weights, expected_weights

__all__ = [
    "ARCHITECTURES",
    "ArchSpec",
    "Expected",
    "Layer",
    "build_embedding_graph",
    "build_graph",
    "check_weights",
    "describe_layers",
    "expected_weights",
    "find_architecture",
    "kv_layers",
]
