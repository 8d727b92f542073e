"""ArchSpec: everything an architecture may declare; a new one is first of all a row of these."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    """Which layers see only the last positions, when the file does not list them itself.

    With period n every n-th layer is global. Local layers rotate by `freq_base` (0: as the
    global ones) without the scaling of the global ones.
    """

    period: int
    freq_base: float = 0.0


@dataclass(frozen=True)
class Routing:
    """How a row chooses experts when the file does not say otherwise."""

    gating: str = "softmax"
    is_normalised: bool = True


@dataclass(frozen=True)
class ArchSpec:
    """The choices of one architecture of the decoder family.

    optional_biases   projections that may carry a bias besides q, k and v
    wide_query_layers number of layers of the one size whose queries are scaled by the share of
                      the embedding that a head has, not by the head size; 0: none
    """

    name: str
    rope_layout: str  # norm | neox
    activation: str  # silu | gelu
    has_scaled_embedding: bool = False  # by sqrt(n_embd)
    has_qk_norm: bool = False  # per head, before the rotation
    has_post_norms: bool = False  # a branch is normalised before it joins
    has_rope_factors: bool = False  # one divisor per frequency may be in the file
    has_whole_rotation: bool = False  # the rotation must cover the head
    window: Window | None = None
    routing: Routing | None = None
    optional_biases: frozenset[str] = frozenset()
    wide_query_layers: int = 0
