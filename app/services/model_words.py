"""What a model is called and what its header says, in a few words."""

import re
from pathlib import Path
from typing import Any

from app.library.models import FoundModel
from app.strings import count, megabytes, tr

_QUANT = re.compile(r"[-._ ]((?:i?q\d\w*|f16|f32|bf16|fp16|mxfp4|nvfp4))$", re.I)
_PIECE = re.compile(r"-\d{5}-of-\d{5}$")


def display_name(path: Path | None, facts: Any = None) -> str:
    """Return the name people know: the file's, tidied, with the quantization behind it.

    A file named by its checksum, as Ollama keeps them, is called what its header says.
    """
    stem = _PIECE.sub("", path.stem) if path else ""
    quant = main_quantization(facts)
    found = _QUANT.search(stem)
    if found:
        stem, quant = stem[: found.start()], quant or found.group(1).upper()
    if path is not None and path.name.startswith("sha256"):
        stem = str(getattr(facts, "name", "") or stem)
    tidy = stem.replace("_", " ").replace("-", " ").strip() or stem
    return f"{tidy} · {quant}" if quant else tidy


def words_for(facts: Any) -> list[str]:
    """Return what a header says, as short words: architecture, size, quantization, context."""
    if facts is None:
        return []
    words = [str(getattr(facts, "arch", "") or "")]
    n_params = getattr(facts, "n_params", 0) or 0
    if n_params:
        words.append(parameters(n_params))
    quant = main_quantization(facts)
    if quant:
        words.append(quant)
    n_ctx = getattr(facts, "n_ctx_train", 0) or 0
    if n_ctx:
        words.append(tr("{n} tokens of context", n=count(n_ctx)))
    return [word for word in words if word]


def parameters(n_params: int) -> str:
    """Return a number of parameters as people say it: 135M, 1.1B."""
    if n_params >= 1e9:
        return f"{n_params / 1e9:.1f}B".replace(".0B", "B")
    return f"{max(1, round(n_params / 1e6))}M"


def main_quantization(facts: Any) -> str:
    """Return the type that most tensors of a model have, floats aside."""
    kinds = dict(getattr(facts, "quantizations", None) or {})
    quantized = {kind: n for kind, n in kinds.items() if kind not in ("F32", "F16", "BF16")}
    chosen = quantized or kinds
    return max(chosen, key=lambda kind: chosen[kind]) if chosen else ""


def line_for(model: FoundModel) -> str:
    """Return the second line of a model in a list: what it is, how large, found where."""
    place = model.place.program or str(model.place.path)
    return " · ".join([*words_for(model.facts), megabytes(model.n_bytes), place])
