"""Special tokens: attributes, the ids that a file gives or hides in texts, what ends generation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.text.families import NONE, Family
from engine.text.strings import StringTable, run

UNKNOWN, UNUSED, NORMAL, CONTROL, USER_DEFINED, BYTE, STRIP_LEFT, STRIP_RIGHT = (
    1 << i for i in range(8)
)
# Attribute of each token type of the file: undefined, normal, unknown, control, user-defined,
# unused, byte.
_OF_TYPE = np.array((0, NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE), np.uint8)

# Texts by which a token is recognised that the file does not name.
_END_OF_TEXT = "<｜end▁of▁sentence｜>"
TEXTS: dict[str, tuple[str, ...]] = {
    "eot": (
        *("<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>"),
        *("<|end_of_text|>", "<EOT>", "_<EOT>", "[EOT]", _END_OF_TEXT, "<end_of_utterance>"),
    ),
    "eom": ("<|eom_id|>",),
    "fim_pre": (
        *("<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>"),
        *("<PRE>", "▁<PRE>", "<|code_prefix|>", "<|prefix|>"),
    ),
    "fim_suf": (
        *("<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>"),
        *("<SUF>", "▁<SUF>", "<|code_suffix|>", "<|suffix|>"),
    ),
    "fim_mid": (
        *("<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>"),
        *("<MID>", "▁<MID>", "<|code_middle|>", "<|middle|>"),
    ),
    "fim_pad": ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"),
    "fim_rep": ("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"),
    "fim_sep": ("<|file_sep|>",),
}
EOG_TEXTS = (
    *("<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>"),
    *("<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]"),
    *("[EOS]", "<|end_of_text|>", "<end_of_utterance>", "<eos>", "<turn|>"),
    *("<|tool_response>", _END_OF_TEXT, "[e~["),
)
_CHANNEL_TEXTS = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>")
# Bucket counts through which a libstdc++ hash map grows, one string at a time.
_MAP_SIZES = (
    *(13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933),
    *(351061, 712697, 1447153, 2938679, 5967347, 12117689),
)
_KEYS = dict(
    bos="bos",
    eos="eos",
    eot="eot",
    eom="eom",
    unk="unknown",
    sep="seperator",
    pad="padding",
    mask="mask",
    fim_pre="fim_pre",
    fim_suf="fim_suf",
    fim_mid="fim_mid",
    fim_pad="fim_pad",
    fim_rep="fim_rep",
    fim_sep="fim_sep",
)
_LEGACY_KEYS = dict(fim_pre="prefix", fim_suf="suffix", fim_mid="middle")


@dataclass(frozen=True)
class SpecialIds:
    """Ids of the tokens with a task; NONE (-1) where the vocabulary has no such token."""

    bos: int = NONE
    eos: int = NONE
    eot: int = NONE
    eom: int = NONE
    unk: int = NONE
    sep: int = NONE
    pad: int = NONE
    mask: int = NONE
    fim_pre: int = NONE
    fim_suf: int = NONE
    fim_mid: int = NONE
    fim_pad: int = NONE
    fim_rep: int = NONE
    fim_sep: int = NONE


def attributes_of(types: NDArray[Any] | None, n_tokens: int) -> NDArray[np.uint8]:
    """Return the attribute of each token, uint8 [n], from the file's types; without, all normal.

    A type that is none of the seven counts as undefined.
    """
    if types is None:
        return np.full(n_tokens, NORMAL, np.uint8)
    known = np.where((types >= 0) & (types < len(_OF_TYPE)), types, 0).astype(np.int64)
    return _OF_TYPE[known[:n_tokens]]


def detect(
    metadata: Mapping[str, Any],
    tokens: StringTable,
    attributes: NDArray[np.uint8],
    family: Family,
) -> tuple[SpecialIds, frozenset[int], list[str]]:
    """Return the special ids, those that end generation, and a sentence for each wrong id.

    `attributes` is changed: what has a task becomes a control token.
    """
    named, warnings = _named_ids(metadata, len(tokens), family)
    texts = [*dict.fromkeys(t for row in TEXTS.values() for t in row), *EOG_TEXTS, *_CHANNEL_TEXTS]
    texts += ["<|plamo:eos|>", "<unk>", "<s>", "<mask>", "[MASK]"]
    found = dict(zip(texts, tokens.find([t.encode() for t in texts]).tolist(), strict=True))
    for name, row in TEXTS.items():
        candidates = [found[text] for text in row if found[text] >= 0]
        if named[name] == NONE and candidates:
            named[name] = _first_in_map_order(tokens, candidates)
            attributes[named[name]] |= CONTROL
    ids = SpecialIds(**named)
    eog_ids = _end_of_generation(ids, found, attributes)
    _set_strip(metadata, found, attributes)
    return ids, eog_ids, warnings


def _named_ids(
    metadata: Mapping[str, Any], n_tokens: int, family: Family
) -> tuple[dict[str, int], list[str]]:
    ids = {field.name: getattr(family, field.name, NONE) for field in fields(SpecialIds)}
    ids = {name: i if i < n_tokens else NONE for name, i in ids.items()}
    warnings = []
    for name, key in [*_LEGACY_KEYS.items(), *_KEYS.items()]:
        value = metadata.get(f"tokenizer.ggml.{key}_token_id")
        if value is None:
            continue
        if isinstance(value, int) and 0 <= value < n_tokens:
            ids[name] = int(value)
        else:
            warnings.append(
                f"The file names {str(value)[:20]} as its {key} token, which is no token of"
                f" its {n_tokens:,}; that is ignored."
            )
    return ids, warnings


def _first_in_map_order(tokens: StringTable, ids: Sequence[int]) -> int:
    """Return the id whose text comes first in the reference's hash map of all tokens."""
    if len(ids) == 1:
        return ids[0]
    n = len(tokens)
    wanted = np.zeros(n, np.uint8)
    wanted[list(ids)] = 1
    sizes = np.array([size for size in _MAP_SIZES if size <= max(13, 3 * n)], np.int64)
    hashes, links = np.zeros(n, np.int64), np.zeros(n + 1, np.int32)
    buckets, result = np.zeros(sizes[-1], np.int32), np.zeros(1, np.int64)
    run(
        "map_order",
        table=tokens.address,
        wanted=wanted.ctypes.data,
        sizes=sizes.ctypes.data,
        n_sizes=len(sizes),
        hashes=hashes.ctypes.data,
        links=links.ctypes.data,
        buckets=buckets.ctypes.data,
        result=result.ctypes.data,
    )
    return int(result[0]) if result[0] >= 0 else min(ids)


def _end_of_generation(
    ids: SpecialIds, found: Mapping[str, int], attributes: NDArray[np.uint8]
) -> frozenset[int]:
    eog = {ids.fim_pad, ids.fim_rep, ids.fim_sep}
    for text in EOG_TEXTS:
        if found[text] >= 0:
            eog.add(found[text])
            attributes[found[text]] |= CONTROL
    for text in _CHANNEL_TEXTS:
        if found[text] >= 0:
            attributes[found[text]] = USER_DEFINED
    eog |= {ids.eos, ids.eot, ids.eom}
    eog.discard(NONE)
    has = {text for text in (*EOG_TEXTS, "<|plamo:eos|>") if found[text] in eog}
    calls = bool(has & {"<|call|>", "<|calls|>"})
    if "<|end|>" in has and calls and has & {"<|return|>", "<|flush|>"}:
        eog.remove(found["<|end|>"])
        attributes[found["<|end|>"]] = USER_DEFINED
    if "</s>" in has and has & {"<|tool_response>", "<|plamo:eos|>"}:
        eog.remove(found["</s>"])
        attributes[found["</s>"]] = NORMAL
    return frozenset(eog)


def _set_strip(
    metadata: Mapping[str, Any], found: Mapping[str, int], attributes: NDArray[np.uint8]
) -> None:
    """Mark tokens that take the white space beside them with them."""
    pre = str(metadata.get("tokenizer.ggml.pre", ""))
    arch = metadata.get("general.architecture")
    name = str(metadata.get("general.name", "")).lower()
    if any(jina in pre for jina in ("jina-v2-de", "jina-v2-es", "jina-v2-code")) or arch in (
        "nomic-bert-moe",
        "jina-bert-v3",
    ):
        _strip(found["<mask>"], STRIP_LEFT, attributes)
    elif "phi-3" in name or "phi3" in name:
        special = (attributes & (CONTROL | USER_DEFINED | UNKNOWN)) != 0
        attributes[special] |= STRIP_RIGHT
        _strip(found["</s>"], STRIP_RIGHT, attributes)
        for text in ("<unk>", "<s>", "<|endoftext|>"):
            if found[text] >= 0:
                attributes[found[text]] &= ~np.uint8(STRIP_RIGHT)
    elif "modern-bert" in name:
        _strip(found["[MASK]"], STRIP_LEFT, attributes)


def _strip(token: int, side: int, attributes: NDArray[np.uint8]) -> None:
    if token >= 0:
        attributes[token] |= side
