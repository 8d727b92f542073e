"""A row of the catalog and the numbers of a file, worked out layer by layer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from engine.compute.graph import Rotation
from engine.errors import ModelFileError, UnsupportedModelError
from engine.hparams import HParams
from engine.memory import KVLayer
from engine.models.rope_scaling import make_rotation
from engine.models.spec import ArchSpec

DEFAULT_FREQ_BASE = 10000.0
GATINGS = {1: "softmax", 2: "sigmoid", 3: "softmax_selected", 4: "sqrt_softplus"}


@dataclass(frozen=True)
class Experts:
    """The mixture of experts of a layer: `n_used` of `n_experts`, each `n_ff` wide."""

    n_experts: int
    n_used: int
    n_ff: int
    gating: str
    is_normalised: bool
    scale: float


@dataclass(frozen=True)
class Layer:
    """One layer: its heads, how far it sees (`window` 0: everything), and how it rotates."""

    n_head: int
    n_head_kv: int
    head_size_k: int
    head_size_v: int
    n_ff: int
    window: int
    query_scale: float
    rotation: Rotation
    experts: Experts | None


def describe_layers(
    spec: ArchSpec, hparams: HParams, factors: ArrayLike | None = None
) -> tuple[Layer, ...]:
    """Return the layers of a model; `factors` are the divisors of its rope frequencies.

    Raises ModelFileError where the file's numbers contradict the architecture and
    UnsupportedModelError where they ask for what it does not have here.
    """
    if spec.has_whole_rotation and hparams.n_rot != hparams.head_size_k:
        raise ModelFileError(
            f"The model file rotates {hparams.n_rot} of {hparams.head_size_k} elements of a head, "
            f"which “{spec.name}” never does: it is damaged or wrongly converted."
        )
    local = _local_layers(spec, hparams)
    base = hparams.rope.freq_base or DEFAULT_FREQ_BASE
    rotation = make_rotation(hparams.rope, spec.rope_layout, hparams.n_rot, base, factors)
    local_rotation = _local_rotation(spec, hparams, rotation)
    scale = _query_scale(spec, hparams)
    experts = _experts(spec, hparams)
    return tuple(
        Layer(
            n_head=hparams.n_head[i],
            n_head_kv=hparams.n_head_kv[i],
            head_size_k=hparams.head_size_k,
            head_size_v=hparams.head_size_v,
            n_ff=hparams.n_ff[i],
            window=hparams.window if local[i] else 0,
            query_scale=scale,
            rotation=local_rotation if local[i] else rotation,
            experts=experts,
        )
        for i in range(hparams.n_layer)
    )


def kv_layers(layers: Sequence[Layer]) -> tuple[KVLayer, ...]:
    """Return what the memory needs to know of each layer."""
    return tuple(
        KVLayer(one.n_head_kv, one.head_size_k, one.head_size_v, one.window) for one in layers
    )


def _local_layers(spec: ArchSpec, hparams: HParams) -> tuple[bool, ...]:
    if spec.window is None or hparams.window == 0:
        return (False,) * hparams.n_layer
    pattern = hparams.window_pattern
    if isinstance(pattern, tuple):
        return pattern
    period = spec.window.period if pattern is None else pattern
    return tuple(period == 0 or i % period < period - 1 for i in range(hparams.n_layer))


def _local_rotation(spec: ArchSpec, hparams: HParams, rotation: Rotation) -> Rotation:
    if spec.window is None:
        return rotation
    base = hparams.rope.freq_base_local or spec.window.freq_base
    if base == 0.0:
        return rotation
    return make_rotation(hparams.rope, spec.rope_layout, hparams.n_rot, base, is_scaled=False)


def _query_scale(spec: ArchSpec, hparams: HParams) -> float:
    if hparams.attention_scale:
        return hparams.attention_scale
    if spec.wide_query_layers and hparams.n_layer == spec.wide_query_layers:
        return 1.0 / math.sqrt(hparams.n_embd // hparams.n_head[0])
    return 1.0 / math.sqrt(hparams.head_size_k)


def _experts(spec: ArchSpec, hparams: HParams) -> Experts | None:
    stated = hparams.experts
    if stated.n_experts == 0:
        return None
    if spec.routing is None:
        raise UnsupportedModelError(
            f"This version runs “{spec.name}” only without experts; the file has "
            f"{stated.n_experts}."
        )
    gating = spec.routing.gating
    if stated.gating is not None:
        if stated.gating not in GATINGS:
            raise UnsupportedModelError(
                f"This version does not know the expert gating function {stated.gating}."
            )
        gating = GATINGS[stated.gating]
    norm = stated.is_normalised
    return Experts(
        n_experts=stated.n_experts,
        n_used=stated.n_used,
        n_ff=stated.n_ff or hparams.n_ff[0],
        gating=gating,
        is_normalised=spec.routing.is_normalised if norm is None else norm,
        scale=stated.scale or 1.0,
    )
