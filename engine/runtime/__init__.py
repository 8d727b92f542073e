"""From batch to logits: the model that everyone shares, and the contexts that run it.

A `Model` is read-only: the mapped file, its numbers, its vocabulary, its kernels. What changes
(memory, buffers, tapes, the team) belongs to a `Context`, which one thread uses at a time.
"""

from engine.runtime.context import Context
from engine.runtime.model import Model
from engine.runtime.model_info import ModelInfo, read_model_info

__all__ = ["Context", "Model", "ModelInfo", "read_model_info"]
