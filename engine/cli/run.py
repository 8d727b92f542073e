"""run: one completion to stdout, and nothing else there."""

import argparse
import json
import sys
from dataclasses import asdict

from engine.cli.options import (
    add_context,
    add_model,
    add_sampling,
    open_client,
    request_of,
)
from engine.cli.terminal import ProgressLine
from engine.client.handle import CompletionHandle
from engine.errors import InternalError
from engine.server.events import Failed, Finished, TextDelta


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    add_model(parser)
    parser.add_argument("--prompt", "-p", required=True, metavar="T", help="the text to go on from")
    parser.add_argument("--chat", action="store_true", help="put it into the model's chat template")
    parser.add_argument("--system", metavar="T", help="with --chat: who the model shall be")
    parser.add_argument("-n", "--n-predict", type=int, default=-1, metavar="N", help="-1: no limit")
    parser.add_argument("--json", action="store_true", help="one object with text and timings")
    add_context(parser)
    add_sampling(parser)


def run(options: argparse.Namespace) -> int:
    """Write the completion of one prompt."""
    prompt = _messages(options) if options.chat else options.prompt
    request = request_of(options, prompt)
    with open_client(options, ProgressLine()) as client:
        last = _stream(client.submit(request), silent=options.json)
    if options.json:
        print(json.dumps(_as_json(last), ensure_ascii=False))
    return 0


def _messages(options: argparse.Namespace) -> list[dict[str, str]]:
    system = [{"role": "system", "content": options.system}] if options.system else []
    return [*system, {"role": "user", "content": options.prompt}]


def _stream(handle: CompletionHandle, *, silent: bool) -> Finished:
    """Write text as it becomes certain; return the last event."""
    for event in handle:
        if isinstance(event, TextDelta) and event.text and not silent:
            sys.stdout.write(event.text)
            sys.stdout.flush()
        elif isinstance(event, Failed):
            raise event.error
        elif isinstance(event, Finished):
            if not silent:
                sys.stdout.write("\n")
            return event
    raise InternalError("The answer ended without a last event.")


def _as_json(last: Finished) -> dict[str, object]:
    timings = last.timings
    speeds = {"read_tps": timings.read_tps, "generate_tps": timings.generate_tps}
    return {
        "text": last.text,
        "tokens": list(last.tokens),
        "stop_type": last.stop_type,
        "truncated": last.truncated,
        "seed": last.seed,
        "timings": asdict(timings) | speeds,
    }
