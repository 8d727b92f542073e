"""prepare: compile the kernels a model needs, so that it opens without waiting."""

import argparse

from engine.cli.options import add_model
from engine.cli.terminal import ProgressLine
from engine.client.client import EngineClient
from engine.params import CompletionRequest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    add_model(parser)


def run(options: argparse.Namespace) -> int:
    """Open the model and let it say one token, which builds and keeps whatever is missing."""
    progress = ProgressLine()
    with EngineClient(options.model, 1, progress, n_ctx=256) as client:
        client.wait_until_ready()
        client.submit(CompletionRequest([0], n_predict=1)).result()
    progress.clear()
    return 0
