"""Tensor names of the model file, spelled once."""

TOKEN_EMBD = "token_embd.weight"
OUTPUT = "output.weight"
OUTPUT_NORM = "output_norm.weight"
ROPE_FREQS = "rope_freqs.weight"
ROPE_FACTORS_LONG = "rope_factors_long.weight"
ROPE_FACTORS_SHORT = "rope_factors_short.weight"


def in_layer(i: int, part: str, kind: str = "weight") -> str:
    """Return the name of a part of layer i: in_layer(3, "attn_q") is "blk.3.attn_q.weight"."""
    return f"blk.{i}.{part}.{kind}"
