"""logits: teacher-forced logits of one token sequence, written as a .npz file."""

import argparse

import numpy as np

from engine.cli.options import add_model
from engine.cli.terminal import ProgressLine
from engine.errors import RequestError
from engine.runtime import Model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    add_model(parser)
    parser.add_argument("--tokens", required=True, metavar="1,2,3", help="ids, fed from position 0")
    parser.add_argument("--positions", metavar="0,2", help="rows to write; default: all")
    parser.add_argument("--out", required=True, metavar="X.npz", help="tokens, positions, logits")
    parser.add_argument("--threads", "-t", type=int, metavar="N")


def run(options: argparse.Namespace) -> int:
    """Decode the tokens as one sequence and write the wanted rows, float32 [n, n_vocab]."""
    tokens = _numbers("--tokens", options.tokens)
    if not tokens:
        raise RequestError("--tokens needs at least one id.")
    wanted = _numbers("--positions", options.positions) if options.positions else None
    rows = list(range(len(tokens))) if wanted is None else wanted
    outside = [row for row in rows if not 0 <= row < len(tokens)]
    if outside:
        raise RequestError(f"Position {outside[0]} is outside the {len(tokens)} tokens.")
    progress = ProgressLine()
    model = Model.load(options.model, progress=progress)
    progress.clear()
    n_threads = options.threads
    context = model.context(
        n_ctx=len(tokens), n_threads=n_threads, n_threads_batch=n_threads, n_batch=len(tokens)
    )
    with context:
        logits = context.decode(tokens, want=rows)
    with open(options.out, "wb") as out:  # given a name, savez would add an ending of its own
        np.savez(out, tokens=tokens, positions=rows, logits=logits)
    return 0


def _numbers(option: str, given: str) -> list[int]:
    try:
        return [int(word) for word in given.split(",") if word.strip()]
    except ValueError as error:
        raise RequestError(f"{option} takes whole numbers divided by commas.") from error
