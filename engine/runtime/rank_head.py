"""The head of a model made for ranking: from the last row of a text to a score for each label."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelFileError
from engine.hparams import HParams
from engine.models import Expected
from engine.runtime.pooling import RANK

DENSE, OUTPUT = "cls", "cls.output"
SOFTMAX_ARCHS = ("qwen3", "qwen3vl")  # their labels are yes and no
Row = NDArray[np.float32]


def expected_head(hparams: HParams, tensors: Mapping[str, Any]) -> list[Expected]:
    """Return the tensors of the head that a model with the pooling “rank” has.

    Raises ModelFileError for one that has none.
    """
    if hparams.pooling != RANK:
        return []
    expected, n_in = [], hparams.n_embd
    for name in (DENSE, OUTPUT):
        tensor = tensors.get(f"{name}.weight")
        if tensor is not None:
            n_out = int((*tensor.shape, 1)[1])
            expected.append(Expected(f"{name}.weight", (n_in, n_out)))
            expected.append(Expected(f"{name}.bias", (n_out,), is_required=False))
            n_in = n_out
    if not expected:
        raise ModelFileError(
            "The model file says that it ranks texts but lacks the head for it: it is incomplete. "
            "Download or convert it again."
        )
    return expected


@dataclass(frozen=True)
class RankHead:
    """Layers of a head, each (weight [n_out, n_in], bias, whether a tanh follows)."""

    layers: tuple[tuple[Row, Row | float, bool], ...]
    is_softmax: bool

    def __call__(self, row: Row) -> Row:
        """Return the scores of the labels, f32 [n_labels], for a last hidden row [n_embd]."""
        x = row
        for weight, bias, has_tanh in self.layers:
            x = weight @ x + bias
            x = np.tanh(x) if has_tanh else x
        if self.is_softmax:
            x = np.exp(x - x.max())
            x = x / x.sum()
        return x.astype(np.float32)


def read_head(hparams: HParams, tensors: Mapping[str, Any]) -> RankHead | None:
    """Return the head of a model, None if it has none."""
    if hparams.pooling != RANK:
        return None
    layers = []
    for name in (DENSE, OUTPUT):
        if f"{name}.weight" in tensors:
            bias = tensors.get(f"{name}.bias")
            weight = _values(tensors[f"{name}.weight"])
            layers.append((weight, 0.0 if bias is None else _values(bias), name == DENSE))
    return RankHead(tuple(layers), hparams.arch in SOFTMAX_ARCHS)


def _values(tensor: Any) -> Row:
    """Return a tensor as float32 [rows, row length], or [n] for a bias."""
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize

    stored = tensor.array().reshape(-1, tensor.row_bytes)
    values = np.asarray(dequantize(stored, GGMLQuantizationType[tensor.type.name]), np.float32)
    return values[0] if len(tensor.shape) == 1 else values
