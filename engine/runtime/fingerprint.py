"""Fingerprints: what a saved sequence must share with the model that goes on with it."""

import hashlib
from collections.abc import Sequence

from engine.gguf import GGUF
from engine.models import Layer

_SAMPLE_BYTES = 64


def model_hash(file: GGUF) -> str:
    """Return a hash of every tensor's name, type, shape and some of its bytes.

    Fine-tuned siblings have the same index; a sample from the middle of each tensor tells them
    apart without reading the file.
    """
    digest = hashlib.sha256()
    for name, entry in sorted(file.tensors.items()):
        digest.update(f"{name} {entry.type.name} {entry.shape}\n".encode())
        stored = entry.array().reshape(-1)
        middle = len(stored) // 2
        digest.update(stored[middle : middle + _SAMPLE_BYTES].tobytes())
    return digest.hexdigest()


def rotation_hash(layers: Sequence[Layer]) -> str:
    """Return a hash of how the layers rotate: stored K depends on it."""
    text = repr([(layer.rotation, layer.window) for layer in layers])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
