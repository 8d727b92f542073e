"""tokenize: a JSON list of texts on stdin to lists of token ids on stdout."""

import argparse
import json
import sys

from engine.cli.options import add_model
from engine.errors import RequestError
from engine.gguf import GGUF
from engine.text import Vocab


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    add_model(parser)
    parser.add_argument("--no-special", action="store_true", help="special tokens are plain text")
    parser.add_argument("--no-bos", action="store_true", help="add no beginning or ending token")
    parser.add_argument("--json", action="store_true", help="one JSON list instead of lines")


def run(options: argparse.Namespace) -> int:
    """Write the ids of each text."""
    texts = _read_texts(sys.stdin.read())
    with GGUF.open(options.model) as file:
        vocab = Vocab.from_gguf(file)
    flags = {"parse_special": not options.no_special, "add_special": not options.no_bos}
    lists = [[int(token) for token in vocab.tokenize(text, **flags)] for text in texts]
    if options.json:
        print(json.dumps(lists))
    else:
        for ids in lists:
            print(*ids)
    return 0


def _read_texts(given: str) -> list[str]:
    try:
        texts = json.loads(given)
    except ValueError as error:
        raise RequestError(f"stdin must hold a JSON list of texts ({error}).") from error
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise RequestError("stdin must hold a JSON list of texts.")
    return texts
