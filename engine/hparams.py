"""The numbers of one model, read from its metadata and checked before anything is built on them.

Nothing here knows what an architecture does with a number; `models/spec.py` gives them meaning.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from engine.errors import ModelFileError

MAX_LAYERS = 1024
MAX_WIDTH = 1 << 20
MAX_HEADS = 4096
MAX_EXPERTS = 1 << 14
MAX_VOCAB = 1 << 24
MAX_CONTEXT = (1 << 31) - 1
POOLINGS = ("none", "mean", "cls", "last", "rank")  # by their number in the file


@dataclass(frozen=True)
class RopeNumbers:
    """Rotary positions as the file states them; `None` means the file is silent."""

    freq_base: float | None
    freq_base_local: float | None
    scaling: str  # none | linear | yarn | longrope
    factor: float
    n_ctx_orig: int
    attn_factor: float
    ext_factor: float | None
    beta_fast: float
    beta_slow: float
    log_multiplier: float


@dataclass(frozen=True)
class ExpertNumbers:
    """A mixture of experts as the file states it; `n_experts` 0 means a dense model."""

    n_experts: int
    n_used: int
    n_ff: int | None
    gating: int | None
    is_normalised: bool | None
    scale: float


@dataclass(frozen=True)
class HParams:
    """What the metadata of one model says. Per-layer numbers are tuples of `n_layer` entries."""

    arch: str
    n_layer: int
    n_embd: int
    n_vocab: int
    n_ctx_train: int
    n_ff: tuple[int, ...]
    n_head: tuple[int, ...]
    n_head_kv: tuple[int, ...]
    head_size_k: int
    head_size_v: int
    n_rot: int
    rms_eps: float
    rope: RopeNumbers
    experts: ExpertNumbers
    window: int  # 0: every layer sees everything
    window_pattern: int | tuple[bool, ...] | None
    attention_scale: float  # 0: 1/sqrt(head size)
    final_softcap: float  # 0: none
    pooling: str | None  # how token rows become one embedding, if the file says so


class Keys:
    """Typed, bounded access to the metadata keys of one architecture."""

    def __init__(self, metadata: Mapping[str, Any], arch: str) -> None:
        self.metadata = metadata
        self.arch = arch

    def find(self, key: str) -> Any:
        """Return the value of `<arch>.<key>`, or None."""
        return self.metadata.get(f"{self.arch}.{key}")

    def count(
        self, key: str, default: int | None = None, *, least: int = 1, most: int = MAX_WIDTH
    ) -> int:
        """Return a whole number; without a default the key is required."""
        value = self.find(key)
        if value is None:
            if default is None:
                raise self.missing(key)
            return default
        return self._whole(key, value, least, most)

    def counts(
        self, key: str, n: int, default: tuple[int, ...] | None = None, *, most: int
    ) -> tuple[int, ...]:
        """Return `n` whole numbers: one per layer, or one number repeated."""
        value = self.find(key)
        if value is None:
            if default is None:
                raise self.missing(key)
            return default
        if not _is_array(value):
            return (self._whole(key, value, 1, most),) * n
        if len(value) < n:
            raise self.refused(key, f"{len(value)} values for {n} layers")
        return tuple(self._whole(key, value[i], 1, most) for i in range(n))

    def real(
        self, key: str, default: float | None = None, *, least: float = 0.0, most: float = 1e12
    ) -> float:
        """Return a finite number; without a default the key is required."""
        value = self.find(key)
        if value is None:
            if default is None:
                raise self.missing(key)
            return default
        if not isinstance(value, Real):
            raise self.refused(key, "not a number")
        number = float(value)
        if not math.isfinite(number) or not least <= number <= most:
            raise self.refused(key, f"{number:g}, expected {least:g} to {most:g}")
        return number

    def word(self, key: str, default: str, known: Sequence[str]) -> str:
        """Return one of the known words."""
        value = self.find(key)
        if value is None:
            return default
        if not isinstance(value, str) or value not in known:
            raise self.refused(key, f"“{str(value)[:40]}”, expected one of {', '.join(known)}")
        return value

    def missing(self, key: str) -> ModelFileError:
        """Return the error for a required key that the file lacks."""
        return ModelFileError(
            f"The model file does not state “{self.arch}.{key}”: it is damaged or was made by an "
            "incomplete conversion. Download or convert it again."
        )

    def refused(self, key: str, why: str) -> ModelFileError:
        """Return the error for a value that cannot be right."""
        return ModelFileError(
            f"The model file states an impossible “{self.arch}.{key}” ({why}): it is damaged. "
            "Download it again."
        )

    def _whole(self, key: str, value: Any, least: int, most: int) -> int:
        if not isinstance(value, Integral):
            raise self.refused(key, "not a whole number")
        number = int(value)
        if not least <= number <= most:
            raise self.refused(key, f"{number}, expected {least} to {most}")
        return number


def read_hparams(metadata: Mapping[str, Any], n_vocab: int) -> HParams:
    """Read and check the numbers of a model.

    `n_vocab` is the number of rows of the token embedding. Raises ModelFileError for a number
    that is missing, absurd or contradicts another.
    """
    arch = metadata.get("general.architecture")
    if not isinstance(arch, str) or not arch:
        raise ModelFileError(
            "The model file does not name its architecture: it is damaged or holds no model."
        )
    keys = Keys(metadata, arch)
    n_layer = keys.count("block_count", most=MAX_LAYERS)
    n_embd = keys.count("embedding_length")
    n_head = keys.counts("attention.head_count", n_layer, most=MAX_HEADS)
    n_head_kv = keys.counts("attention.head_count_kv", n_layer, n_head, most=MAX_HEADS)
    for heads, heads_kv in zip(n_head, n_head_kv, strict=True):
        if heads % heads_kv:
            raise keys.refused("attention.head_count_kv", f"{heads_kv} of {heads} heads")
    head_size = n_embd // n_head[0]
    head_size_k = keys.count("attention.key_length", head_size or None, most=MAX_HEADS)
    n_ctx_train = keys.count("context_length", most=MAX_CONTEXT)
    n_rot = keys.count("rope.dimension_count", head_size_k - head_size_k % 2, least=2)
    if n_rot > head_size_k or n_rot % 2:
        raise keys.refused("rope.dimension_count", f"{n_rot} of heads of {head_size_k}")
    if not 1 <= n_vocab <= MAX_VOCAB:
        raise ModelFileError(f"The model file has a vocabulary of {n_vocab} tokens: it is damaged.")
    return HParams(
        arch=arch,
        n_layer=n_layer,
        n_embd=n_embd,
        n_vocab=n_vocab,
        n_ctx_train=n_ctx_train,
        n_ff=keys.counts("feed_forward_length", n_layer, most=MAX_WIDTH * 4),
        n_head=n_head,
        n_head_kv=n_head_kv,
        head_size_k=head_size_k,
        head_size_v=keys.count("attention.value_length", head_size or None, most=MAX_HEADS),
        n_rot=n_rot,
        rms_eps=keys.real("attention.layer_norm_rms_epsilon", most=1.0),
        rope=_read_rope(keys, n_ctx_train),
        experts=_read_experts(keys),
        window=keys.count("attention.sliding_window", 0, least=0, most=MAX_CONTEXT),
        window_pattern=_read_window_pattern(keys, n_layer),
        attention_scale=keys.real("attention.scale", 0.0, most=1e4),
        final_softcap=keys.real("final_logit_softcapping", 0.0, most=1e6),
        pooling=_read_pooling(keys),
    )


def _read_pooling(keys: Keys) -> str | None:
    if keys.find("pooling_type") is None:
        return None
    return POOLINGS[keys.count("pooling_type", least=0, most=len(POOLINGS) - 1)]


def _read_rope(keys: Keys, n_ctx_train: int) -> RopeNumbers:
    factor = keys.real("rope.scaling.factor", keys.real("rope.scale_linear", 1.0), most=1e6)
    base = keys.find("rope.freq_base")
    local = keys.find("rope.freq_base_swa")
    ext = keys.find("rope.scaling.yarn_ext_factor")
    return RopeNumbers(
        freq_base=None if base is None else keys.real("rope.freq_base", least=1.01),
        freq_base_local=None if local is None else keys.real("rope.freq_base_swa", least=1.01),
        scaling=keys.word("rope.scaling.type", "linear", ("none", "linear", "yarn", "longrope")),
        factor=factor or 1.0,
        n_ctx_orig=keys.count(
            "rope.scaling.original_context_length", n_ctx_train, most=MAX_CONTEXT
        ),
        attn_factor=keys.real("rope.scaling.attn_factor", 1.0, most=1e3),
        ext_factor=None if ext is None else keys.real("rope.scaling.yarn_ext_factor", least=-1),
        beta_fast=keys.real("rope.scaling.yarn_beta_fast", 32.0, least=1e-3),
        beta_slow=keys.real("rope.scaling.yarn_beta_slow", 1.0, least=1e-3),
        log_multiplier=keys.real("rope.scaling.yarn_log_multiplier", 0.0, least=-1e3, most=1e3),
    )


def _read_experts(keys: Keys) -> ExpertNumbers:
    n_experts = keys.count("expert_count", 0, least=0, most=MAX_EXPERTS)
    n_used = keys.count("expert_used_count", 0, least=0, most=MAX_EXPERTS)
    if n_experts and not 1 <= n_used <= n_experts:
        raise keys.refused("expert_used_count", f"{n_used} of {n_experts} experts")
    norm = keys.find("expert_weights_norm")
    gating = keys.find("expert_gating_func")
    n_ff = keys.find("expert_feed_forward_length")
    return ExpertNumbers(
        n_experts=n_experts,
        n_used=n_used if n_experts else 0,
        n_ff=None if n_ff is None else keys.count("expert_feed_forward_length"),
        gating=None if gating is None else keys.count("expert_gating_func", least=0, most=16),
        is_normalised=None if norm is None else bool(norm),
        scale=keys.real("expert_weights_scale", 0.0, most=1e4),
    )


def _read_window_pattern(keys: Keys, n_layer: int) -> int | tuple[bool, ...] | None:
    value = keys.find("attention.sliding_window_pattern")
    if value is None:
        return None
    if not _is_array(value):
        return keys.count("attention.sliding_window_pattern", least=0, most=MAX_LAYERS)
    if len(value) < n_layer:
        why = f"{len(value)} values for {n_layer} layers"
        raise keys.refused("attention.sliding_window_pattern", why)
    return tuple(bool(value[i]) for i in range(n_layer))


def _is_array(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes))
