"""The tensors that an architecture's row implies, held against those that the file has."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.errors import ModelFileError, UnsupportedModelError
from engine.hparams import HParams
from engine.models import names
from engine.models.layers import Layer
from engine.models.spec import ArchSpec


class Tensor(Protocol):
    """What is asked of a tensor of the file."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions, row length first."""

    @property
    def type(self) -> "TensorType":
        """Its quantization."""


class TensorType(Protocol):
    """A quantization, by name."""

    @property
    def name(self) -> str:
        """Such as Q4_K."""


@dataclass(frozen=True)
class Expected:
    """A tensor that the model reads: its name and its shape, row length first."""

    name: str
    shape: tuple[int, ...]
    is_required: bool = True


def expected_weights(
    spec: ArchSpec, hparams: HParams, layers: Sequence[Layer], found: Iterable[str]
) -> list[Expected]:
    """Return every tensor that the model may have; `found` tells fused projections from split."""
    present = set(found)
    embd, vocab = hparams.n_embd, hparams.n_vocab
    expected = [
        Expected(names.TOKEN_EMBD, (embd, vocab)),
        Expected(names.OUTPUT_NORM, (embd,)),
        Expected(names.OUTPUT, (embd, vocab), is_required=False),
    ]
    if spec.has_rope_factors:
        for name in (names.ROPE_FREQS, names.ROPE_FACTORS_LONG, names.ROPE_FACTORS_SHORT):
            expected.append(Expected(name, (hparams.n_rot // 2,), is_required=False))
    for i, layer in enumerate(layers):
        parts = [*_attention(spec, layer, embd, names.in_layer(i, "attn_qkv") in present)]
        parts += _feed_forward(spec, layer, embd)
        for part, kind, shape, is_required in parts:
            expected.append(Expected(names.in_layer(i, part, kind), shape, is_required))
    return expected


_Part = tuple[str, str, tuple[int, ...], bool]


def _projection(
    spec: ArchSpec, part: str, shape: tuple[int, int], has_bias: bool = False
) -> list[_Part]:
    parts: list[_Part] = [(part, "weight", shape, True)]
    if has_bias or part in spec.optional_biases:
        parts.append((part, "bias", (shape[1],), False))
    return parts


def _attention(spec: ArchSpec, layer: Layer, embd: int, is_fused: bool) -> list[_Part]:
    q, k = layer.n_head * layer.head_size_k, layer.n_head_kv * layer.head_size_k
    v, out = layer.n_head_kv * layer.head_size_v, layer.n_head * layer.head_size_v
    parts: list[_Part] = [("attn_norm", "weight", (embd,), True)]
    sizes = {"attn_qkv": q + k + v} if is_fused else {"attn_q": q, "attn_k": k, "attn_v": v}
    for part, size in sizes.items():
        parts += _projection(spec, part, (embd, size), has_bias=True)
    parts += _projection(spec, "attn_output", (out, embd))
    if spec.has_qk_norm:
        parts.append(("attn_q_norm", "weight", (layer.head_size_k,), True))
        parts.append(("attn_k_norm", "weight", (layer.head_size_k,), True))
    if spec.has_post_norms:
        parts.append(("post_attention_norm", "weight", (embd,), True))
    return parts


def _feed_forward(spec: ArchSpec, layer: Layer, embd: int) -> list[_Part]:
    parts: list[_Part] = [("ffn_norm", "weight", (embd,), True)]
    if layer.experts is None:
        parts += _projection(spec, "ffn_gate", (embd, layer.n_ff))
        parts += _projection(spec, "ffn_up", (embd, layer.n_ff))
        parts += _projection(spec, "ffn_down", (layer.n_ff, embd))
    else:
        n, width = layer.experts.n_experts, layer.experts.n_ff
        parts.append(("ffn_gate_inp", "weight", (embd, n), True))
        parts.append(("ffn_gate_exps", "weight", (embd, width, n), True))
        parts.append(("ffn_up_exps", "weight", (embd, width, n), True))
        parts.append(("ffn_down_exps", "weight", (width, embd, n), True))
    if spec.has_post_norms:
        parts.append(("post_ffw_norm", "weight", (embd,), True))
    return parts


def check_weights(
    expected: Sequence[Expected], found: Mapping[str, Tensor], matrix_types: Sequence[str]
) -> None:
    """Hold the tensors of a file against what its architecture needs.

    `matrix_types` are the quantizations that have kernels. Raises ModelFileError for a tensor
    that is missing or has another shape, UnsupportedModelError for a quantization without a
    kernel and for tensors that nothing here would read (the answers would be wrong).
    """
    for each in expected:
        tensor = found.get(each.name)
        if tensor is not None:
            _check_shape(each, tuple(tensor.shape))
        elif each.is_required:
            raise ModelFileError(
                f"The model file lacks the tensor “{each.name}”: it is incomplete. "
                "Download or convert it again."
            )
    unread = [name for name in found if name not in {each.name for each in expected}]
    if unread:
        raise UnsupportedModelError(
            f"The model has {len(unread)} tensors that this version does not use, such as "
            f"“{unread[0][:80]}”: it needs a newer version."
        )
    _check_types(found, matrix_types)


def _check_shape(each: Expected, shape: tuple[int, ...]) -> None:
    trimmed = shape
    while len(trimmed) > len(each.shape) and trimmed[-1] == 1:
        trimmed = trimmed[:-1]
    if trimmed != each.shape:
        raise ModelFileError(
            f"The tensor “{each.name}” has the shape {list(shape)}, but the model's numbers "
            f"ask for {list(each.shape)}: the file is damaged or wrongly converted."
        )


def _check_types(found: Mapping[str, Tensor], matrix_types: Sequence[str]) -> None:
    without: dict[str, list[str]] = {}
    for name, tensor in found.items():
        is_vector = sum(n > 1 for n in tensor.shape) <= 1
        if tensor.type.name not in (("F32", "F16", "BF16") if is_vector else matrix_types):
            without.setdefault(tensor.type.name, []).append(name)
    if without:
        kinds = ", ".join(f"{kind} ({len(which)} tensors)" for kind, which in without.items())
        raise UnsupportedModelError(
            f"The model is quantized as {kinds}, which this version cannot compute; "
            f"it computes {', '.join(matrix_types)}."
        )
