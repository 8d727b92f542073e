"""perplexity: how well a model predicts a text, token by token.

The text is read in windows of `n_ctx` tokens that overlap by half: every token but the first is
predicted exactly once, and after the first window from at least half a window of context.
"""

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.cli.options import add_model
from engine.cli.terminal import ProgressLine
from engine.errors import RequestError
from engine.runtime import Model

PIECE = 64  # rows of logits held at once: 64 MB for a vocabulary of 262k tokens


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    add_model(parser)
    parser.add_argument("--file", required=True, metavar="T", help="a UTF-8 text file")
    parser.add_argument(
        "--n-ctx", "-c", type=int, default=512, metavar="N", help="window of tokens"
    )
    parser.add_argument("--threads", "-t", type=int, metavar="N")
    parser.add_argument("--json", action="store_true")


def run(options: argparse.Namespace) -> int:
    """Print the mean negative log likelihood (natural) and its exponential."""
    if options.n_ctx < 2:
        raise RequestError("A window needs at least two tokens (--n-ctx).")
    text = _read_text(options.file)
    progress = ProgressLine()
    model = Model.load(options.model, progress=progress)
    tokens = [int(token) for token in model.vocab.tokenize(text, parse_special=False)]
    if len(tokens) < 2:
        raise RequestError("The text is too short: it has no token to predict.")
    n_threads = options.threads
    context = model.context(n_ctx=options.n_ctx, n_threads=n_threads, n_threads_batch=n_threads)
    has_bos = tokens[0] == model.vocab.bos
    losses: list[float] = []
    with context:
        for first, start, end in _windows(len(tokens), options.n_ctx):
            # Each window begins as the text does: with the beginning token, if there is one.
            window = tokens[:1] + tokens[first + 1 : end] if has_bos else tokens[first:end]
            losses += _window_losses(context, window, start - first)
            progress("predicting", end / len(tokens))
    progress.clear()
    nll = math.fsum(losses) / len(losses)
    found = {"n_tokens": len(losses), "nll": nll, "perplexity": math.exp(min(nll, 700.0))}
    if options.json:
        print(json.dumps(found))
    else:
        print(f"{len(losses)} tokens: nll {nll:.4f}, perplexity {found['perplexity']:.4f}")
    return 0


def _read_text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(f"{path} is not UTF-8 text ({error.reason}).") from error


def _windows(n_tokens: int, n_ctx: int) -> Iterator[tuple[int, int, int]]:
    """Yield (first token read, first token predicted, end) of each window."""
    start = 1
    while start < n_tokens:
        first = 0 if start == 1 else start - n_ctx // 2
        end = min(first + n_ctx, n_tokens)
        yield first, start, end
        start = end


def _window_losses(context: Any, tokens: Sequence[int], n_skipped: int) -> list[float]:
    """Return -ln p of the tokens of one window from index `n_skipped` on."""
    context.memory.clear()
    losses: list[float] = []
    for at in range(0, len(tokens) - 1, PIECE):
        piece = tokens[at : min(at + PIECE, len(tokens) - 1)]
        wanted = [i for i in range(len(piece)) if at + i + 1 >= n_skipped]
        rows = context.decode(piece, want=wanted)
        for row, i in zip(rows, wanted, strict=True):
            losses.append(_loss(row, tokens[at + i + 1]))
    return losses


def _loss(row: Any, token: int) -> float:
    logits = np.asarray(row, np.float64)
    top = logits.max()
    return float(top + np.log(np.exp(logits - top).sum()) - logits[token])
