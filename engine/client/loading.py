"""From a model file to what the engine loop runs on: runtime, vocabulary, template, sampler."""

from typing import Any

from engine.params import ContextParams
from engine.server.loaded import Loaded
from engine.server.loop import Progress


def check_model(path: str) -> Any:
    """Read the header of a model file; raise ModelFileError or UnsupportedModelError."""
    raise NotImplementedError(path)


def load_model(path: str, params: ContextParams, n_gpu_layers: int, report: Progress) -> Loaded:
    """Load weights, vocabulary and kernels; `report(stage, 0..1)` may raise to give up."""
    raise NotImplementedError(path)
