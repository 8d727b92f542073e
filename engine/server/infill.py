"""Infill: the prompt for a model that writes what belongs between a prefix and a suffix."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.errors import RequestError

REPOSITORY = "myproject\n"
THIS_FILE = "filename\n"
SNIPPET = "\n\n--- snippet ---\n\n"

Tokenize = Callable[[str], list[int]]


@dataclass(frozen=True)
class Infill:
    """A gap in a text: what stands around it, other files as (name, text), how it begins.

    `suffix_first` is for models that were trained so.
    """

    prefix: str
    suffix: str
    extra: Sequence[tuple[str, str]] = ()
    prompt: str = ""
    suffix_first: bool = False


def infill_prompt(
    gap: Infill, vocab: Any, tokenize: Tokenize, n_ctx: int, n_batch: int, n_predict: int
) -> list[int]:
    """Return the prompt of a gap as token ids, shortened around it to fit a batch.

    `vocab.ids` names the tokens that mark prefix, suffix and middle; RequestError without them.
    """
    ids = vocab.ids
    if min(ids.fim_pre, ids.fim_suf, ids.fim_mid) < 0:
        raise RequestError(
            "This model cannot fill gaps: its vocabulary has no tokens that mark one. Choose a "
            "model that was trained for it."
        )
    begun = tokenize(gap.prompt)
    n_prefix = 3 * (n_batch // 4)
    n_suffix = max(0, n_batch // 4 - (2 + len(begun)))
    extra = _other_files(gap.extra, ids, tokenize)
    n_extra = max(0, n_ctx - n_batch - 2 * max(n_predict, 0))
    prefix = [ids.fim_pre, *tokenize(gap.prefix)[-n_prefix:], *begun]
    suffix = [ids.fim_suf, *tokenize(gap.suffix)[:n_suffix]]
    around = [*suffix, *prefix] if gap.suffix_first else [*prefix, *suffix]
    before = [vocab.bos] if vocab.bos >= 0 and vocab.switches.add_bos else []
    return [*extra[max(0, len(extra) - n_extra) :], *before, *around, ids.fim_mid]


def _other_files(files: Sequence[tuple[str, str]], ids: Any, tokenize: Tokenize) -> list[int]:
    """Return the tokens of the other files, and of the name of this one."""
    tokens: list[int] = []
    if ids.fim_rep >= 0:
        tokens += [ids.fim_rep, *tokenize(REPOSITORY)]
    for name, text in files:
        if ids.fim_sep >= 0:
            tokens += [ids.fim_sep, *tokenize(f"{name}\n")]
        else:
            tokens += tokenize(SNIPPET)
        tokens += tokenize(text)
    if ids.fim_sep >= 0:
        tokens += [ids.fim_sep, *tokenize(THIS_FILE)]
    return tokens
