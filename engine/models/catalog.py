"""ARCHITECTURES: the name in the file to the architecture's row."""

from engine.errors import UnsupportedModelError
from engine.models.spec import ArchSpec, Routing, Window

_ROWS = (
    # Llama 1 to 3, Mistral, Mixtral, TinyLlama, SmolLM, Yi and many that take its name.
    ArchSpec(
        "llama",
        rope_layout="norm",
        activation="silu",
        has_rope_factors=True,
        has_whole_rotation=True,
        routing=Routing(),
        optional_biases=frozenset({"attn_output", "ffn_gate", "ffn_up", "ffn_down"}),
    ),
    ArchSpec(
        "gemma3",
        rope_layout="neox",
        activation="gelu",
        has_scaled_embedding=True,
        has_qk_norm=True,
        has_post_norms=True,
        window=Window(period=6, freq_base=10000.0),
        wide_query_layers=62,
    ),
)

ARCHITECTURES: dict[str, ArchSpec] = {row.name: row for row in _ROWS}


def find_architecture(name: str) -> ArchSpec:
    """Return the row of an architecture; an unknown one raises UnsupportedModelError."""
    spec = ARCHITECTURES.get(name)
    if spec is None:
        raise UnsupportedModelError(
            f"This version cannot run the architecture “{name[:60]}”; "
            f"it runs {', '.join(sorted(ARCHITECTURES))}."
        )
    return spec
