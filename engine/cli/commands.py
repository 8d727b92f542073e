"""COMMANDS: every command with its module and its one-line help, and how one is run."""

import argparse
import importlib
import logging
import os
import sys
from collections.abc import Callable, Sequence

from engine.errors import EngineError, nearest

COMMANDS = {
    "run": ("engine.cli.run", "write one completion to stdout"),
    "chat": ("engine.cli.chat", "talk in the terminal"),
    "bench": ("engine.cli.bench", "measure prompt and generation speed"),
    "prepare": ("engine.cli.prepare", "compile what a model needs, so that it opens at once"),
    "inspect": ("engine.cli.inspect", "show metadata, tensors and a memory estimate of a file"),
    "tokenize": ("engine.cli.tokenize", "turn texts (a JSON list on stdin) into token ids"),
    "logits": ("engine.cli.logits", "write teacher-forced logits of a token sequence"),
    "perplexity": ("engine.cli.perplexity", "measure how well a model predicts a text"),
}
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # What goes wrong is said in one line; without a handler Python would print the rest as well.
    logging.getLogger("engine").addHandler(logging.NullHandler())
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    if not words or words[0] not in COMMANDS:
        return _usage(words)
    module = importlib.import_module(COMMANDS[words[0]][0])
    parser = argparse.ArgumentParser(
        prog=f"python -m engine {words[0]}", description=COMMANDS[words[0]][1]
    )
    module.add_arguments(parser)
    return _guarded(lambda: module.run(parser.parse_args(words[1:])))


def _guarded(command: Callable[[], int]) -> int:
    """Run a command and turn what it raises into an exit code."""
    try:
        return command()
    except EngineError as error:
        return _refuse(str(error))
    except BrokenPipeError:
        # Whoever read our output is gone; the interpreter must not try to flush it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _refuse(f"{error.filename or 'The system'}: {error.strerror or error}")
    except KeyboardInterrupt:
        return INTERRUPTED


def _refuse(sentence: str) -> int:
    sys.stdout.flush()
    print("error:", " ".join(sentence.split()), file=sys.stderr)
    return 1


def _usage(words: Sequence[str]) -> int:
    asked_for_help = bool(words) and words[0] in ("-h", "--help", "help")
    out = sys.stdout if asked_for_help else sys.stderr
    if words and not asked_for_help:
        print(f"There is no command “{words[0]}”.{nearest(words[0], COMMANDS)}", file=out)
    print("usage: python -m engine COMMAND [options]   (COMMAND -h tells its options)\n", file=out)
    for name, (_, summary) in COMMANDS.items():
        print(f"  {name:11} {summary}", file=out)
    return 0 if asked_for_help else 2
