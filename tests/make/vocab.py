"""Small vocabularies made by hand, in the form in which a GGUF file gives its metadata."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from engine.text import Vocab
from engine.text.bpe import BYTE_SPELLING
from engine.text.strings import string_array

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
BYTE_CHARS = tuple(chr(code) for code in BYTE_SPELLING.tolist())
BYTE_TOKENS = tuple(f"<0x{value:02X}>" for value in range(256))
SPACE = "\u2581"


def vocab(metadata: dict[str, Any]) -> Vocab:
    """Read a vocabulary from metadata."""
    return Vocab.from_gguf(SimpleNamespace(metadata=metadata))


def metadata(model: str, tokens: dict[str, int], **keys: Any) -> dict[str, Any]:
    """Return metadata of a vocabulary: token text to token type, and further tokenizer keys."""
    made = {
        "general.architecture": "llama",
        "tokenizer.ggml.model": model,
        "tokenizer.ggml.tokens": string_array([text.encode() for text in tokens]),
        "tokenizer.ggml.token_type": np.array(list(tokens.values()), np.int32),
    }
    return made | {f"tokenizer.ggml.{name}": value for name, value in keys.items()}


def byte_pairs(
    merges: list[str], further: dict[str, int] | None = None, pre: str = "gpt-2", **keys: Any
) -> dict[str, Any]:
    """Return a byte-pair vocabulary: every byte, what the merges make, and further tokens."""
    chars = BYTE_CHARS if pre != "gemma4" else tuple(map(chr, range(33, 127))) + (SPACE, "\n")
    tokens = dict.fromkeys((*chars, *(m.replace(" ", "", 1) for m in merges)), NORMAL)
    if pre == "gemma4":
        tokens |= dict.fromkeys(BYTE_TOKENS, BYTE)
    keys.setdefault("merges", string_array([merge.encode() for merge in merges]))
    return metadata("gpt2", tokens | (further or {}), pre=pre, **keys)


def sentence_pieces(
    scored: dict[str, float], further: dict[str, int] | None = None, **keys: Any
) -> dict[str, Any]:
    """Return a SentencePiece vocabulary: <unk> <s> </s>, bytes, scored pieces, further tokens."""
    tokens = {"<unk>": UNKNOWN, "<s>": CONTROL, "</s>": CONTROL}
    tokens |= dict.fromkeys(BYTE_TOKENS, BYTE) | dict.fromkeys(scored, NORMAL) | (further or {})
    scores = np.array([scored.get(token, 0.0) for token in tokens], np.float32)
    return metadata("llama", tokens, **{"scores": scores} | keys)
