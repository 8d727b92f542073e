"""prepare: compile the kernels a model needs, so that it opens without waiting."""

import argparse

from engine.cli.options import add_model
from engine.cli.terminal import ProgressLine
from engine.runtime import Model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    add_model(parser)


def run(options: argparse.Namespace) -> int:
    """Open the model once with a small context, which builds and keeps what is missing."""
    progress = ProgressLine()
    model = Model.load(options.model, progress=progress)
    with model.context(n_ctx=256) as context:
        context.decode([0])
    progress.clear()
    return 0
