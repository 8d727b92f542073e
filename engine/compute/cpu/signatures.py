"""Argument words of every CPU kernel, and the words of the blocks that change with each step.

A kernel is `void (args, thread, n_threads)`; `args` is the address of an int64 block whose words
are named here, in order. A word is an address, a count, a size in bytes or the bits of a float
(`f32_bits`). Rows are f32 unless a comment says otherwise: row t of a buffer x is at x + t * ldx,
with ldx in bytes. `n_rows` is the *address* of a count, so that the same tape serves any batch:
`count_address(batch, "n_tokens")` or `count_address(batch, "n_outputs")`. An optional operand is
0 when absent. Rows may have any length; a kernel never reads or writes beyond a row's end.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from engine.errors import InternalError, nearest
from engine.native import level

# Words of the batch block: addresses are of int32 arrays.
BATCH_WORDS = ("n_tokens", "tokens", "positions", "n_outputs", "output_rows")
N_TOKENS, TOKENS, POSITIONS, N_OUTPUTS, OUTPUT_ROWS = range(5)

# Words of a page pool's block, and of one run in its table (int64[n_runs, 4]).
POOL_WORDS = ("n_runs", "runs", "cells", "page_positions")
N_RUNS, RUNS, CELLS, PAGE_POSITIONS = range(4)
RUN_WORDS = ("first_row", "n_rows", "pages", "n_pages")
FIRST_ROW, RUN_N_ROWS, PAGES, N_PAGES = range(4)

PAGE_CELLS = 32
LANES = 16

# Values of the word `activation` of pointwise/activate.
ACTIVATIONS = ("silu", "gelu", "gelu_erf", "gelu_quick", "relu", "relu_squared", "swiglu_oai")
# Values of the word `gating` of pointwise/router.
GATINGS = ("softmax", "sigmoid", "softmax_selected", "sqrt_softplus")

_KV_PAGES = ("k_base", "k_page_bytes", "v_base", "v_page_bytes")

# attention.<k>.<v>/attend and /attend_split share their first words. `window` 0 = no window,
# `softcap` (f32) 0 = none, `sinks` f32[n_head] or 0. `scratch` holds attention_scratch_bytes()
# per thread, `scratch_stride` apart; `partials` holds partials_bytes().
_ATTEND = (
    *("batch", "pool", "q", "ldq", "n_head", "n_head_kv", "head_size_k", "head_size_v"),
    *("scale", "softcap", "window", "sinks", *_KV_PAGES),
    *("out", "ldo", "scratch", "scratch_stride", "counter"),
)

_ATTENTION = {
    # Normalise (optional weights f32[head_size_k]) and rotate q and k in place, then write k and v
    # into pool.cells. `table` is a row set of pointwise/rope_table or 0. v has head_size_v.
    "store": (
        *("batch", "pool", "q", "ldq", "k", "ldk", "v", "ldv"),
        *("n_head", "n_head_kv", "head_size_k", "head_size_v", "q_norm", "k_norm", "eps"),
        *("table", "n_rot", "neox", *_KV_PAGES),
    ),
    # Rows of whole tiles by one thread each: prompts. Needs a cleared counter.
    "attend": _ATTEND,
    # Few rows: pages are shared out over the threads; `merge` finishes. Needs a cleared counter.
    "attend_split": (*_ATTEND, "partials"),
    # The same block as attend_split; a barrier must lie between the two.
    "merge": (*_ATTEND, "partials"),
    # Rotate stored K in place: row i of `deltas` (int32[n_pages, 32], 0 = leave) belongs to page
    # pages[i] (int32). `inv_freq` is f64[n_rot / 2]. Scratch: shift_scratch_bytes() per thread.
    "shift": (
        *("n_pages", "pages", "deltas", "n_head_kv", "head_size_k", "inv_freq", "n_rot", "neox"),
        *("k_base", "k_page_bytes", "scratch", "scratch_stride"),
    ),
}

_POINTWISE = {
    # Zero n_words int64 at counters.
    "clear": ("counters", "n_words"),
    # table[t] = cos then signed sin of position * inv_freq (f64[n_rot / 2]), times magnitude (f32);
    # rows of 2 * n_rot floats.
    "rope_table": ("batch", "inv_freq", "n_rot", "magnitude", "neox", "table"),
    # out = norm(x) * weight + bias over n values; weight and bias may be 0. A row holds n_groups
    # stretches of n values, each normalised alone; group_stride (bytes) steps weight and bias.
    # out may be x.
    "rms_norm": (
        *("n_rows", "x", "ldx", "n", "n_groups", "group_stride", "weight", "bias", "eps"),
        *("out", "ldo"),
    ),
    "layer_norm": (
        *("n_rows", "x", "ldx", "n", "n_groups", "group_stride", "weight", "bias", "eps"),
        *("out", "ldo"),
    ),
    # x += rms_norm(y) * weight: a branch that is normalised before it joins (Gemma).
    "post_norm_add": ("n_rows", "y", "ldy", "n", "weight", "eps", "x", "ldx"),
    # out = x + y, out = x * y; ldy = 0 repeats one row (a bias, a scale per column). out may be x.
    "add": ("n_rows", "x", "ldx", "y", "ldy", "n", "out", "ldo"),
    "multiply": ("n_rows", "x", "ldx", "y", "ldy", "n", "out", "ldo"),
    # out = x * factor (f32). out may be x.
    "scale": ("n_rows", "x", "ldx", "n", "factor", "out", "ldo"),
    # out = cap * tanh(x / cap). out may be x.
    "softcap": ("n_rows", "x", "ldx", "n", "cap", "out", "ldo"),
    # out = f(gate) * up, or f(gate) where up is 0; activation is an index into ACTIVATIONS.
    "activate": ("n_rows", "activation", "gate", "ldg", "up", "ldu", "n", "out", "ldo"),
    # out[i] = x[output_rows[i]] for the batch's n_outputs rows.
    "gather": ("batch", "x", "ldx", "n", "out", "ldo"),
    # Experts of each row: ids int32[n_used] and weights f32[n_used], best first, ties to the lower
    # index. `bias` (f32[n_expert] or 0) moves the choice, not the weights. n_group > 1: only the
    # n_group_used groups with the best two-member sums take part. normalise: weights /= sum.
    # n_expert <= 1024.
    "router": (
        *("n_rows", "logits", "ldl", "n_expert", "n_used", "gating", "bias", "normalise"),
        *("scale", "n_group", "n_group_used", "ids", "ldi", "weights", "ldw"),
    ),
    # out = sum_i weights[i] * y[i], plus out before when add is 1. Row t of y holds n_used rows of
    # n floats, lde bytes apart.
    "combine": (
        *("n_rows", "y", "ldy", "lde", "n_used", "weights", "ldw", "n", "add", "out", "ldo"),
    ),
    # Copy whole pages in every layer: pairs int32[n_pairs, 2] of (from, to), layers
    # int64[n_layers, 4] of (k_base, k_page_bytes, v_base, v_page_bytes).
    "copy_pages": ("n_pairs", "pairs", "n_layers", "layers"),
}

# Values of the word `transform`: what a matmul does to its input row x before multiplying.
# plain x; rms_norm(x) * norm (f32[n_in] or 0); silu(x) * x2; gelu(x) * x2 (tanh form).
TRANSFORMS = ("plain", "rms_norm", "silu", "gelu")

# Types whose tiles are alike share one `quantize` or `arrange` of the same input: "float" tiles
# are made by matmul.input/arrange, "block32" and "block256" by matmul.input/quantize with the word
# `block` 32 or 256.
TILE_LAYOUTS = {
    **dict.fromkeys(("f32", "f16", "bf16"), "float"),
    **dict.fromkeys(("q4_0", "q4_1", "q5_0", "q5_1", "q8_0"), "block32"),
    **dict.fromkeys(("q4_k", "q5_k", "q6_k"), "block256"),
}
# Types that prepare a row alike in gemv and multi: `reuse` may be 1 after a matmul of such a type
# with the same input, scratch and kernel, and nothing in between that used the scratch.
ROW_LAYOUTS = {
    **dict.fromkeys(("f32", "f16", "bf16"), "float"),
    **{name: name for name in ("q4_0", "q5_0", "q8_0", "q6_k")},
    **dict.fromkeys(("q4_1", "q5_1"), "q4_1"),
    **dict.fromkeys(("q4_k", "q5_k"), "q4_k"),
}
FEW_ROWS = 8  # up to this many rows `multi` is faster than `gemm`
MULTI_ROWS = 16  # the same for types whose nibbles have wide dots; multi reads weights once for all
WIDE_DOT_TYPES = ("q4_0", "q4_1", "q5_0", "q5_1")


def has_wide_dots(weight_type: str) -> bool:
    """Return whether `multi` of a type takes two weight rows by four inputs: few_rows.py."""
    now = level.current()
    is_wide = now.name == "avx512" and "avx512vbmi" in now.features
    return is_wide and weight_type in WIDE_DOT_TYPES


_INPUT = ("transform", "x", "ldx", "x2", "ldx2", "norm", "eps")
_WEIGHT = ("w", "row_bytes", "n_in", "n_out")
# y = W f(x) + bias (f32[n_out] or 0), plus y before when add is 1. Exactly n_out floats of a row
# of y are written.
_OUTPUT = ("bias", "add", "y", "ldy")
# matmul_scratch_bytes() per thread, scratch_stride apart; a cleared counter.
_SHARE = ("scratch", "scratch_stride", "counter")

_MATMUL = {
    # out[t] = row tokens[t] of w, n_in values, times scale (f32).
    "embed": ("batch", "w", "row_bytes", "n_in", "scale", "out", "ldo"),
    # One row: only row 0 is computed, nothing when the count is 0.
    "gemv": ("n_rows", *_INPUT, *_WEIGHT, *_OUTPUT, *_SHARE, "reuse"),
    # Any count of rows, made for 2 to MULTI_ROWS: weights come from memory once, and go through the
    # vectors once per four rows.
    "multi": ("n_rows", *_INPUT, *_WEIGHT, *_OUTPUT, *_SHARE, "reuse"),
    # Many rows, from tiles.
    "gemm": ("n_rows", "tiles", *_WEIGHT, *_OUTPUT, *_SHARE),
    # matmul.input: tiles of f(x) for gemm. `tiles` holds tile_bytes().
    "quantize": ("n_rows", *_INPUT, "n_in", "block", "tiles", *_SHARE),
    "arrange": ("n_rows", *_INPUT, "n_in", "tiles", *_SHARE),
}

_EXPERTS = {
    # Mixture of experts, any count of rows: slot i of row t multiplies by expert ids[t][i] (int32,
    # rows ldi bytes apart) of w, experts expert_bytes apart, its bias bias_bytes apart. Slot i's
    # input (and x2) is slot_x bytes after slot 0's (0 = all the same), its output slot_y bytes.
    "product": (
        *("n_rows", "n_used", "ids", "ldi", *_INPUT, "slot_x", *_WEIGHT, "expert_bytes"),
        *("n_expert", *_OUTPUT, "bias_bytes", "slot_y", *_SHARE),
    ),
}

_FAMILIES: dict[str, Mapping[str, tuple[str, ...]]] = {
    "attention": _ATTENTION,
    "experts": _EXPERTS,
    "matmul": _MATMUL,
    "pointwise": _POINTWISE,
}


def words(kernel: str) -> tuple[str, ...]:
    """Return the word names of "unit/kernel"; units of one family share them.

    Raises InternalError for a kernel that has no row here.
    """
    unit, _, name = kernel.partition("/")
    family = FAMILIES.get(unit.split(".")[0], {})
    if name not in family:
        raise InternalError(f"There is no signature of kernel “{kernel}”.{nearest(name, family)}")
    return family[name]


FAMILIES: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(_FAMILIES)


def pack(kernel: str, **values: int) -> NDArray[np.int64]:
    """Return the argument block of "unit/kernel", its words in order.

    Raises InternalError when a word is missing or unknown.
    """
    names = words(kernel)
    missing = [name for name in names if name not in values]
    unknown = [name for name in values if name not in names]
    if missing or unknown:
        raise InternalError(
            f"The block of “{kernel}” lacks {missing or 'nothing'} and does not know"
            f" {unknown or 'nothing more'}."
        )
    return np.array([values[name] for name in names], np.int64)


def count_address(batch: NDArray[np.int64], word: str) -> int:
    """Return the address of a count word of a batch block: what kernels take as `n_rows`."""
    return batch.ctypes.data + 8 * BATCH_WORDS.index(word)


def padded(head_size: int) -> int:
    """Return the head size in storage: a multiple of 16."""
    return -(-head_size // LANES) * LANES


# A tile of attention: at most TILE_ROWS query rows of one KV head over KEY_BLOCK cells at a time.
TILE_ROWS = 12
KEY_BLOCK = 4 * PAGE_CELLS
RANGES_PER_THREAD = 4  # a few rows: pieces of the pages that each thread may take


def attention_scratch_bytes(head_size_k: int, head_size_v: int) -> int:
    """Return the scratch bytes of one thread in attend and attend_split."""
    floats = padded(head_size_k) + padded(head_size_v) + KEY_BLOCK + 4
    return -(-(TILE_ROWS * floats * 4 + 256) // 64) * 64


def partials_bytes(
    n_tokens: int, n_head: int, n_head_kv: int, head_size_v: int, n_threads: int
) -> int:
    """Return the bytes of `partials` for up to n_tokens rows on a team of n_threads."""
    n_tiles = n_tokens * n_head_kv * -(-(n_head // n_head_kv) // TILE_ROWS)
    n_slots = n_tiles + RANGES_PER_THREAD * n_threads
    return n_slots * TILE_ROWS * (padded(head_size_v) + LANES) * 4


def shift_scratch_bytes(head_size_k: int) -> int:
    """Return the scratch bytes of one thread in shift: cos, sin and K of 16 cells, one's row."""
    return padded(head_size_k) * (2 * LANES + 1) * 4 + 64


MAX_TILE_TOKENS = 8  # tokens of one tile, at most, on any CPU level
MAX_PANEL_ROWS = 64  # weight rows that one thread of gemm holds, at most


def tile_bytes(n_in: int, n_tokens: int) -> int:
    """Return the bytes of `tiles` for n_tokens rows of n_in values, of any tile layout."""
    n_tokens = -(-n_tokens // MAX_TILE_TOKENS) * MAX_TILE_TOKENS
    return -(-n_in // 32) * 32 * 4 * n_tokens


def matmul_scratch_bytes(n_in: int, n_tokens: int) -> int:
    """Return the scratch bytes of one thread that serve any matmul kernel of up to n_tokens rows.

    gemv, multi and experts keep prepared rows there, gemm its panel and results, quantize and
    arrange the transformed rows of a tile.
    """
    row = -(-n_in // 256) * 256 * 5 + 1024
    few = (min(n_tokens, MULTI_ROWS) + 2) * row
    gemm = MAX_PANEL_ROWS * (1024 + 256 + 4 * (n_tokens + MAX_TILE_TOKENS)) + 4096
    tile = MAX_TILE_TOKENS * row
    return -(-max(few, gemm, tile) // 4096) * 4096
