"""Command-line options that several commands share, made from the fields of `engine.params`."""

import argparse
from dataclasses import fields
from typing import Any

from engine.cli.terminal import ProgressLine
from engine.client.client import EngineClient
from engine.params import CompletionRequest, SamplingParams

SHORT = {"temperature": ("--temp",), "seed": ("-s",)}


def add_model(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add the model file."""
    parser.add_argument("--model", "-m", required=required, metavar="F", help="a .gguf file")


def add_context(parser: argparse.ArgumentParser, *, n_ctx: int = 4096) -> None:
    """Add what a context is made with."""
    parser.add_argument("--n-ctx", "-c", type=int, default=n_ctx, metavar="N", help="its tokens")
    parser.add_argument("--threads", "-t", type=int, metavar="N", help="default: one per core")
    parser.add_argument(
        "--batch", "-b", type=int, default=2048, metavar="N", help="tokens per batch"
    )
    parser.add_argument("--ubatch", type=int, default=512, metavar="N", help="tokens at once")


def context_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of `add_context` under the names of ContextParams."""
    return {
        "n_ctx": options.n_ctx,
        "n_threads": options.threads,
        "n_threads_batch": options.threads,
        "n_batch": options.batch,
        "n_ubatch": min(options.ubatch, options.batch),
    }


def add_sampling(parser: argparse.ArgumentParser) -> None:
    """Add one option for each number of SamplingParams."""
    group = parser.add_argument_group("sampling")
    for each in fields(SamplingParams):
        if "kind" in each.metadata:
            group.add_argument(
                "--" + each.name.replace("_", "-"),
                *SHORT.get(each.name, ()),
                dest=each.name,
                type=each.metadata["kind"],
                metavar="X",
                help=f"default {each.default}",
            )


def sampling_params(options: argparse.Namespace) -> SamplingParams:
    """Return the sampling settings that were given, the others as they are by default."""
    names = (each.name for each in fields(SamplingParams) if "kind" in each.metadata)
    return SamplingParams(**{name: getattr(options, name) for name in names})


def open_client(options: argparse.Namespace, progress: ProgressLine) -> EngineClient:
    """Open the model in one slot and wait until it is ready; raises its load error."""
    client = EngineClient(options.model, 1, progress, **context_options(options))
    try:
        client.wait_until_ready()
    except BaseException:
        client.close()
        raise
    finally:
        progress.clear()
    return client


def request_of(options: argparse.Namespace, prompt: Any) -> CompletionRequest:
    """Return a request with the given limits and sampling settings."""
    return CompletionRequest(
        prompt,
        params=sampling_params(options),
        n_predict=options.n_predict,
        return_progress=False,
    )
