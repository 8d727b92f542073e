"""chat: talk in the terminal; Ctrl-C stops an answer, Ctrl-D ends the talk."""

import argparse
import sys

from engine.cli.options import (
    add_context,
    add_model,
    add_sampling,
    open_client,
    request_of,
)
from engine.cli.terminal import ProgressLine, printable
from engine.client.client import EngineClient
from engine.server.events import Failed, Finished, PromptProgress, TextDelta

HELP = "Type a message. Ctrl-C stops an answer, /new forgets the talk, Ctrl-D ends."
Messages = list[dict[str, str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    add_model(parser)
    parser.add_argument("--system", metavar="T", help="who the model shall be")
    parser.add_argument("-n", "--n-predict", type=int, default=-1, metavar="N", help="-1: no limit")
    add_context(parser)
    add_sampling(parser)


def run(options: argparse.Namespace) -> int:
    """Talk until the input ends."""
    first: Messages = [{"role": "system", "content": options.system}] if options.system else []
    messages = list(first)
    with open_client(options, ProgressLine()) as client:
        print(HELP, file=sys.stderr)
        while (line := _read_line()) is not None:
            if line == "/new":
                messages = list(first)
            elif line.strip():
                messages.append({"role": "user", "content": line})
                answer = _answer(client, options, messages)
                if answer is None:
                    messages.pop()
                else:
                    messages.append({"role": "assistant", "content": answer})
    return 0


def _read_line() -> str | None:
    """Return the next message, or None at the end of the input."""
    prompt = "> " if sys.stdin.isatty() else ""
    while True:
        try:
            return input(prompt)
        except EOFError:
            print(file=sys.stderr)
            return None
        except KeyboardInterrupt:
            print("\n(Ctrl-D ends)", file=sys.stderr)


def _answer(client: EngineClient, options: argparse.Namespace, messages: Messages) -> str | None:
    """Stream one answer; return its text, or None if it failed."""
    handle = client.submit(request_of(options, messages).replace(return_progress=True))
    progress = ProgressLine()
    events = iter(handle)
    while True:
        try:
            event = next(events, None)
        except KeyboardInterrupt:
            handle.cancel()
            events = iter(handle)
            continue
        if event is None:
            return None
        if isinstance(event, PromptProgress):
            progress("reading", event.done)
            continue
        progress.clear()
        if isinstance(event, TextDelta):
            print(printable(event.text), end="", flush=True)
        elif isinstance(event, Finished):
            print(" [stopped]\n" if event.stop_type == "cancelled" else "\n", flush=True)
            return event.text
        elif isinstance(event, Failed):
            print("error:", event.message, file=sys.stderr)
            return None
