"""ModelInfo: what a model file says of itself, read without touching a weight."""

import os
from dataclasses import dataclass, field
from typing import Any

from engine.compute.graph import Rotation
from engine.errors import ModelFileError
from engine.gguf import GGUF
from engine.hparams import HParams, read_hparams
from engine.models import (
    ArchSpec,
    Layer,
    check_weights,
    describe_layers,
    expected_weights,
    find_architecture,
    names,
)
from engine.native.units import MATMUL_TYPES
from engine.runtime.model_sampling import model_sampling
from engine.runtime.rank_head import expected_head

MATRIX_TYPES = tuple(name.upper() for name in MATMUL_TYPES)
# What a file says its quantization is, by the number under “general.file_type”.
FILE_TYPES = {
    **{0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K"},
    **{11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S"},
    **{17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS"},
    **{23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S"},
    **{29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0"},
    38: "MXFP4",
}


@dataclass(frozen=True)
class ModelInfo:
    """The face of a model: counts are weights, layers and tokens; sizes are bytes."""

    arch: str
    name: str
    n_params: int
    n_layer: int
    n_embd: int
    n_vocab: int
    n_ctx_train: int
    quantizations: dict[str, int]
    size_bytes: int
    chat_template: str | None
    file_type: str = ""  # as people name the quantization, Q4_K_M; "" when the file is silent
    sampling: dict[str, Any] = field(default_factory=dict)  # values that its maker recommends


@dataclass(frozen=True)
class Description:
    """A checked model file: its architecture's row, its numbers, its layers."""

    spec: ArchSpec
    hparams: HParams
    layers: tuple[Layer, ...]
    info: ModelInfo

    @property
    def rotations(self) -> list[tuple[int, Rotation]]:
        """Each layer with how it rotates."""
        return [(i, layer.rotation) for i, layer in enumerate(self.layers)]


def read_model_info(path: str | os.PathLike[str]) -> ModelInfo:
    """Return what a model file says of itself; reads metadata only.

    Raises ModelFileError for a damaged file and UnsupportedModelError for a model that this
    version cannot run.
    """
    with GGUF.open(path) as file:
        return describe(file).info


def describe(file: GGUF) -> Description:
    """Hold a model file against its architecture's row; errors as in `read_model_info`."""
    spec = find_architecture(file.arch)
    embedding = file.tensors.get(names.TOKEN_EMBD)
    if embedding is None or len(embedding.shape) < 2:
        raise ModelFileError(
            f"The model file has no “{names.TOKEN_EMBD}”: it holds a vocabulary or a part of a "
            "model, not a whole one."
        )
    hparams = read_hparams(file.metadata, embedding.shape[1])
    layers = describe_layers(spec, hparams)
    expected = expected_weights(spec, hparams, layers, file.tensors)
    expected += expected_head(hparams, file.tensors)
    check_weights(expected, file.tensors, MATRIX_TYPES)
    _check_vocabulary(file, hparams.n_vocab)
    return Description(spec, hparams, layers, _info(file, hparams))


def _check_vocabulary(file: GGUF, n_vocab: int) -> None:
    tokens = file.metadata.get("tokenizer.ggml.tokens")
    if tokens is not None and len(tokens) != n_vocab:
        raise ModelFileError(
            f"The model file lists {len(tokens)} tokens but has embeddings for {n_vocab}: it is "
            "damaged or wrongly converted."
        )


def _info(file: GGUF, hparams: HParams) -> ModelInfo:
    template = file.metadata.get("tokenizer.chat_template")
    name = file.metadata.get("general.name")
    file_type = file.metadata.get("general.file_type")
    return ModelInfo(
        arch=hparams.arch,
        name=name if isinstance(name, str) else "",
        n_params=file.n_params,
        n_layer=hparams.n_layer,
        n_embd=hparams.n_embd,
        n_vocab=hparams.n_vocab,
        n_ctx_train=hparams.n_ctx_train,
        quantizations=file.quantizations,
        size_bytes=file.size_bytes,
        chat_template=template if isinstance(template, str) else None,
        file_type=FILE_TYPES.get(file_type, "") if isinstance(file_type, int) else "",
        sampling=model_sampling(file.metadata),
    )
