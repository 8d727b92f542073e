"""What a file says about its vocabulary, checked against itself."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelFileError, UnsupportedModelError, nearest
from engine.gguf import StringArray
from engine.text import special
from engine.text.families import NONE, Family, find_family
from engine.text.pretokenize import PRE_TOKENIZERS, PreTokenizer
from engine.text.special import SpecialIds
from engine.text.strings import StringTable, string_array

_KEY = "tokenizer.ggml."
_NO_MERGES = ("kimi-k2", "whitespace")  # pre-tokenizers whose vocabularies may come without merges


@dataclass(frozen=True)
class Switches:
    """What is added to or changed in a text, after family, pre-tokenizer and file had their say."""

    add_bos: bool
    add_eos: bool
    add_sep: bool
    add_space_prefix: bool
    clean_spaces: bool
    escape_spaces: bool
    lowercase: bool
    strip_accents: bool
    merge_spaces: bool


@dataclass(frozen=True)
class VocabFile:
    """The checked contents of a vocabulary.

    `scores` f32 [n] belong to the kinds spm and ugm, `merges` and `pre_tokenizer` to bpe,
    `character_map` to ugm. `warnings` are sentences about what the file says wrongly and what was
    done instead.
    """

    model: str
    family: Family
    pre: str
    pre_tokenizer: PreTokenizer
    tokens: StringTable
    attributes: NDArray[np.uint8]
    ids: SpecialIds
    eog_ids: frozenset[int]
    switches: Switches
    scores: NDArray[np.float32]
    merges: StringTable
    character_map: bytes
    suppressed: tuple[int, ...]
    warnings: tuple[str, ...]


def read_vocab(metadata: Mapping[str, Any]) -> VocabFile:
    """Return what the metadata of a model says about its vocabulary.

    Raises ModelFileError for a vocabulary that contradicts itself, its subclass
    UnsupportedModelError for a tokenizer or pre-tokenizer that is not built in.
    """
    model = metadata.get(_KEY + "model")
    if not isinstance(model, str):
        raise ModelFileError(
            "This file names no tokenizer, so it cannot take text; choose another model."
        )
    family = find_family(model)
    pre, pre_tokenizer, warnings = _pre_tokenizer(metadata, family)
    tokens = _tokens(metadata)
    types = _numbers(metadata, "token_type", len(tokens))
    attributes = special.attributes_of(types, len(tokens))
    if not pre_tokenizer.has_bos:
        family = replace(family, bos=NONE)
    ids, eog_ids, id_warnings = special.detect(metadata, tokens, attributes, family)
    scores = _numbers(metadata, "scores", len(tokens))
    if scores is None:
        scores = np.zeros(len(tokens), np.float32)
    suppressed = metadata.get(_KEY + "suppress_tokens")
    return VocabFile(
        model=model,
        family=family,
        pre=pre,
        pre_tokenizer=pre_tokenizer,
        tokens=tokens,
        attributes=attributes,
        ids=ids,
        eog_ids=eog_ids,
        switches=_switches(metadata, family, pre_tokenizer),
        scores=scores.astype(np.float32),
        merges=_merges(metadata, family, pre),
        character_map=_bytes(metadata, "precompiled_charsmap"),
        suppressed=_ids_within(suppressed, len(tokens)),
        warnings=(*warnings, *id_warnings),
    )


def _pre_tokenizer(
    metadata: Mapping[str, Any], family: Family
) -> tuple[str, PreTokenizer, list[str]]:
    """Return the pre-tokenizer's name and row; families that need none get the default row."""
    name = family.pre_tokenizer or metadata.get(_KEY + "pre")
    if family.kind != "bpe":
        return "", PRE_TOKENIZERS["default"], []
    if name is None:
        warning = (
            "The file does not say how its tokenizer cuts words, so the default rule is used:"
            " answers may be worse than the model's best; an up-to-date file says it."
        )
        return "default", PRE_TOKENIZERS["default"], [warning]
    row = PRE_TOKENIZERS.get(name) if isinstance(name, str) else None
    if row is None:
        shown = str(name)[:40]
        raise UnsupportedModelError(
            f"This model's tokenizer cuts words by the rule “{shown}”, which is not built in; a"
            f" newer version may know it.{nearest(shown, PRE_TOKENIZERS)}"
        )
    return name, row, []


def _tokens(metadata: Mapping[str, Any]) -> StringTable:
    strings = metadata.get(_KEY + "tokens")
    if not isinstance(strings, StringArray) or len(strings) == 0:
        raise ModelFileError("This file holds no vocabulary; choose a complete model file.")
    empty = np.flatnonzero(strings.ends == strings.starts)
    if len(empty):
        texts = strings.tolist()
        for i in empty.tolist():
            texts[i] = f"[EMPTY_{i}]".encode()
        strings = string_array(texts)
    tokens = StringTable(strings)
    if tokens.first_repeated >= 0:
        text = tokens[tokens.first_repeated][:40].decode("utf-8", "replace")
        raise ModelFileError(
            f"The vocabulary of this file holds the token “{text}” twice; download it again."
        )
    return tokens


def _numbers(metadata: Mapping[str, Any], name: str, n_tokens: int) -> NDArray[Any] | None:
    """Return a numeric array of at least one number for each token, or None where there is none."""
    array = metadata.get(_KEY + name)
    if array is None:
        return None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iuf":
        raise ModelFileError(f"The vocabulary of this file has no numbers as {name}.")
    if len(array) < n_tokens:
        raise ModelFileError(
            f"The vocabulary of this file has {n_tokens:,} tokens but {len(array):,} as {name};"
            " download it again."
        )
    return array[:n_tokens]


def _merges(metadata: Mapping[str, Any], family: Family, pre: str) -> StringTable:
    merges = metadata.get(_KEY + "merges") if family.kind == "bpe" else None
    if isinstance(merges, StringArray):
        return StringTable(merges, is_pairs=True)
    if family.kind != "bpe" or (merges is None and pre in _NO_MERGES):
        return StringTable(string_array([]), is_pairs=True)
    raise ModelFileError(
        "This file lacks the merges of its byte-pair tokenizer; choose a complete model file."
    )


def _switches(metadata: Mapping[str, Any], family: Family, pre_tokenizer: PreTokenizer) -> Switches:
    def chosen(name: str, default: bool) -> bool:
        return bool(metadata.get(_KEY + name, default))

    lowercase = chosen("normalizer.lowercase", pre_tokenizer.patterns != "whitespace")
    return Switches(
        add_bos=pre_tokenizer.forces_bos
        or chosen("add_bos_token", family.add_bos or pre_tokenizer.add_bos),
        add_eos=chosen("add_eos_token", family.add_eos),
        add_sep=chosen("add_sep_token", family.add_sep or pre_tokenizer.add_sep),
        add_space_prefix=chosen("add_space_prefix", family.add_space_prefix),
        clean_spaces=family.clean_spaces and pre_tokenizer.clean_spaces,
        escape_spaces=family.escape_spaces or pre_tokenizer.escape_spaces,
        lowercase=lowercase,
        strip_accents=chosen("normalizer.strip_accents", lowercase),
        merge_spaces=chosen("remove_extra_whitespaces", False),
    )


def _bytes(metadata: Mapping[str, Any], name: str) -> bytes:
    array = metadata.get(_KEY + name)
    return array.tobytes() if isinstance(array, np.ndarray) and array.itemsize == 1 else b""


def _ids_within(array: Any, n_tokens: int) -> tuple[int, ...]:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu":
        return ()
    return tuple(array[(array >= 0) & (array < n_tokens)].tolist())
