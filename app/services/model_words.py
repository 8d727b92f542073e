"""What a model is called and what its header says, in a few words."""

import re
from pathlib import Path
from typing import Any

from app.library.models import FoundModel
from app.strings import count, megabytes, tr

_QUANT = re.compile(r"(?:^|[-._ ])((?:i?q\d\w*|f16|f32|bf16|fp16|mxfp4|nvfp4))$", re.I)
_PIECE = re.compile(r"-\d{5}-of-\d{5}$")
_SIZE = re.compile(r"(?:^|[^a-z0-9.])(?:\d+x)?\d+(?:\.\d+)?[bmk](?![a-z0-9])", re.I)
_TRAINING = re.compile(r"\b(?:lc\d|mix\d|ep\d|step\d|checkpoint|hf|merged)", re.I)


def display_name(path: Path | None, facts: Any = None) -> str:
    """Return the name people know, with the quantization behind it.

    The name is the file's, tidied, unless that says little and the header says more.
    """
    stem = _PIECE.sub("", path.stem) if path else ""
    found = _QUANT.search(stem)
    quant = str(getattr(facts, "file_type", "") or "")
    quant = quant or (found.group(1).upper() if found else main_quantization(facts))
    title = model_title(stem, str(getattr(facts, "name", "") or ""))
    return f"{title} · {quant}" if quant else title


def model_title(stem: str, stated: str = "") -> str:
    """Return what to call a model: its file's stem, tidied, or the name that its header states.

    The header wins where the file is named by a checksum, or tells no size while the header does;
    a header that lists how the model was trained is no name.
    """
    found = _QUANT.search(stem)
    bare = stem[: found.start()] if found else stem
    tidy = re.sub(r"[-_]+", " ", bare).strip() or stem
    sensible = 0 < len(stated) <= 40 and not _TRAINING.search(stated)
    is_code = stem.startswith("sha256") or not bare
    if stated and (is_code or (sensible and not _SIZE.search(tidy) and _SIZE.search(stated))):
        return re.sub(r"[-_]+", " ", stated).strip()
    return tidy


def words_for(facts: Any) -> list[str]:
    """Return what a header says, as short words: architecture, size, quantization, context."""
    if facts is None:
        return []
    words = [str(getattr(facts, "arch", "") or "")]
    n_params = getattr(facts, "n_params", 0) or 0
    if n_params:
        words.append(parameters(n_params))
    quant = str(getattr(facts, "file_type", "") or main_quantization(facts))
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


def title_of(model: FoundModel) -> str:
    """Return the first line of a model in a list: the name that its program gave it, or ours."""
    if model.place.kind == "ollama":
        return model.name
    return model_title(model.name, str(getattr(model.facts, "name", "") or ""))


def line_for(model: FoundModel) -> str:
    """Return the second line of a model in a list: what it is, how large, found where."""
    place = model.place.program or str(model.place.path)
    return " · ".join([*words_for(model.facts), megabytes(model.n_bytes), place])
