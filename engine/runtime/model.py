"""Model: one file, mapped and read-only, with all that its contexts share."""

import os
import weakref
from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from engine.compute.graph import Graph
from engine.errors import RequestError
from engine.gguf import GGUF
from engine.models import build_embedding_graph, build_graph, describe_layers, names
from engine.native import objects
from engine.params import ContextParams
from engine.runtime.context import Context
from engine.runtime.fingerprint import model_hash
from engine.runtime.model_info import Description, ModelInfo, describe
from engine.runtime.rank_head import RankHead, read_head
from engine.runtime.read_ahead import read_ahead
from engine.text import Vocab

Progress = Callable[[str, float], None]
N_CTX_STEP = 256


class Model:
    """A loaded model; any number of contexts may run on it. A context manager that closes it."""

    def __init__(self, file: GGUF, description: Description) -> None:
        self._file = file
        self._description = description
        self._contexts: weakref.WeakSet[Context] = weakref.WeakSet()
        self.hparams = description.hparams
        self.info: ModelInfo = description.info

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        n_gpu_layers: int = 0,
        progress: Progress | None = None,
    ) -> Self:
        """Open a model file and make its kernels ready; weights stay where they are, on the disk.

        `progress(stage, done)` hears of the stages “map”, “compile kernels” (only what no earlier
        run has compiled) and “read”, done going from 0 to 1; what it raises ends the load. This
        version computes on the CPU whatever `n_gpu_layers` says. Raises ModelFileError or its
        subclass UnsupportedModelError for the file, MachineError for the machine.
        """
        report = progress or (lambda stage, done: None)
        report("map", 0.0)
        file = GGUF.open(path)
        try:
            description = describe(file)
            report("map", 1.0)
            model = cls(file, description)
            model.kernels_for("f16", "f16", progress)
            read_ahead(file, lambda done: report("read", done))
        except BaseException:
            file.close()
            raise
        return model

    def kernels_for(
        self, type_k: str, type_v: str, progress: Progress | None = None
    ) -> objects.Kernels:
        """Return the kernels of the model with K and V of these types, compiled if need be.

        `progress` hears of “compile kernels” as in `load`. Raises MachineError if they cannot be
        stored.
        """
        report = progress or (lambda stage, done: None)
        names = _units(self._file, type_k, type_v)
        return objects.load(names, lambda _, done: report("compile kernels", done))

    @cached_property
    def vocab(self) -> Vocab:
        """The vocabulary; raises UnsupportedModelError if its tokenizer is not built in."""
        return Vocab.from_gguf(self._file)

    @cached_property
    def fingerprint(self) -> str:
        """What tells this model from any other: of its index and a few bytes of every tensor."""
        return model_hash(self._file)

    @cached_property
    def rank_head(self) -> RankHead | None:
        """What makes scores of a text's last row, in a model made for ranking."""
        return read_head(self.hparams, self._file.tensors)

    @property
    def metadata(self) -> Any:
        """The metadata of the file, a read-only mapping."""
        return self._file.metadata

    @property
    def tensors(self) -> Any:
        """The tensors of the file by name."""
        return self._file.tensors

    def context(
        self,
        params: ContextParams | None = None,
        *,
        progress: Progress | None = None,
        **options: Any,
    ) -> Context:
        """Return a new context with its own memory and team.

        `options` are the fields of ContextParams; `progress` hears of kernels that its types of K
        and V need (see `kernels_for`). Raises RequestError for an option that does not exist or
        cannot be honoured, MachineError when memory is short.
        """
        if params is not None and options:
            raise RequestError("Give either settings or single options, not both.")
        context = Context(self, params or ContextParams(**options), progress)
        self._contexts.add(context)
        return context

    def layers_for(self, n_ctx: int) -> tuple[Any, ...]:
        """Return the layers as they are for sequences of up to n_ctx tokens."""
        factors = self._rope_factors(n_ctx)
        return describe_layers(self._description.spec, self.hparams, factors)

    def graph_for(self, layers: tuple[Any, ...], *, is_embedding: bool = False) -> Graph:
        """Return the graph of one forward pass, to logits or to the last hidden state."""
        build = build_embedding_graph if is_embedding else build_graph
        return build(self._description.spec, self.hparams, layers, self._file.tensors)

    def n_ctx_of(self, wanted: int) -> int:
        """Return the context length for a wish; 0 is what the model was trained for."""
        n_ctx = wanted or self.hparams.n_ctx_train
        return -(-n_ctx // N_CTX_STEP) * N_CTX_STEP

    def _rope_factors(self, n_ctx: int) -> NDArray[np.float32] | None:
        tensors = self._file.tensors
        is_long = n_ctx > self.hparams.rope.n_ctx_orig
        by_length = names.ROPE_FACTORS_LONG if is_long else names.ROPE_FACTORS_SHORT
        for name in (names.ROPE_FREQS, by_length):
            if name in tensors and tensors[name].type.name == "F32":
                return tensors[name].array().reshape(-1).view(np.float32)
        return None

    def close(self) -> None:
        """Close every context of the model, then the file."""
        for context in list(self._contexts):
            context.close()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _units(file: GGUF, type_k: str, type_v: str) -> list[str]:
    """Return the kernel units that a model needs with K and V of these types."""
    products = set()
    for entry in file.tensors.values():
        if sum(n > 1 for n in entry.shape) > 1:
            family = "experts" if len(entry.shape) > 2 else "matmul"
            products.add(f"{family}.{entry.type.name.lower()}")
    return ["team", "pointwise", "matmul.input", *sorted(products), f"attention.{type_k}.{type_v}"]
