"""FAMILIES: tokenizer name in the file to its family, with what holds unless the file differs."""

from dataclasses import dataclass, replace
from types import MappingProxyType

from engine.errors import UnsupportedModelError, nearest

NONE = -1  # no such token


@dataclass(frozen=True)
class Family:
    """Defaults of one tokenizer family; ids are NONE where it has no such token.

    `kind`: "spm" (SentencePiece merges), "bpe" (byte pairs), "wpm" (WordPiece), "ugm" (Unigram)
    or "rwkv".
    `pre_tokenizer` overrides the name
    in the file. `drops_spaces`: text is cut at white space, which is lost, before anything else.
    """

    kind: str
    bos: int = NONE
    eos: int = NONE
    unk: int = NONE
    sep: int = NONE
    pad: int = NONE
    mask: int = NONE
    add_bos: bool = False
    add_eos: bool = False
    add_sep: bool = False
    add_space_prefix: bool = False
    clean_spaces: bool = False
    escape_spaces: bool = False
    pre_tokenizer: str = ""
    drops_spaces: bool = False


_BPE = Family("bpe", bos=11, eos=11, clean_spaces=True)

FAMILIES = MappingProxyType(
    {
        "llama": Family("spm", 1, 2, 0, add_bos=True, add_space_prefix=True, escape_spaces=True),
        "bert": Family(
            *("wpm", 101, NONE, 100, 102, 0, 103),
            add_bos=True,
            add_sep=True,
            clean_spaces=True,
            escape_spaces=True,
        ),
        "t5": Family("ugm", eos=1, unk=2, pad=0, add_eos=True, escape_spaces=True),
        "rwkv": Family("rwkv", escape_spaces=True),
        "gpt2": _BPE,
        "gemma4": Family(
            "bpe", add_bos=True, clean_spaces=True, escape_spaces=True, pre_tokenizer="gemma4"
        ),
        "whitespace": replace(_BPE, drops_spaces=True),
    }
)
# Families that files may name and that are not built in: what to call them.
NOT_BUILT_IN = MappingProxyType(
    {"plamo2": "PLaMo-2", "hybriddna": "hybrid DNA", "test": "the test tokenizer"}
)
NO_TOKENIZER = ("none", "no_vocab")


def find_family(name: str) -> Family:
    """Return the family a file names; raises UnsupportedModelError for any other."""
    family = FAMILIES.get(name)
    if family is not None:
        return family
    if name in NO_TOKENIZER:
        raise UnsupportedModelError(
            "This file comes without a tokenizer, so it cannot take text; choose another model."
        )
    if name in NOT_BUILT_IN:
        raise UnsupportedModelError(
            f"This model's tokenizer, {NOT_BUILT_IN[name]}, is not built in; choose a model with"
            " another tokenizer."
        )
    raise UnsupportedModelError(
        f"This model names an unknown tokenizer, “{name[:40]}”; a newer version may know it."
        f"{nearest(name[:40], FAMILIES)}"
    )
