"""What a FakeClient remembers: conversations as texts, in slots and in files."""

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from engine.errors import StateFileError
from engine.server.places import KnownPrefix

PIECE = re.compile(r"\s*\S{1,6}|\s+")
MARK = "a scripted conversation of "


class Known(NamedTuple):
    """A text that is remembered, and how many tokens it is said to have."""

    text: str = ""
    n_tokens: int = 0


def count_tokens(text: str) -> int:
    """Return how many made-up tokens a text has."""
    return len(PIECE.findall(text))


def told(prompt: Any, reply: str = "") -> str:
    """Return a prompt, and the answer to it, as one text."""
    if isinstance(prompt, str):
        return prompt + reply
    lines = [
        f"{item.get('role')}: {item.get('content')}\n" if hasattr(item, "get") else f"{item} "
        for item in prompt
    ]
    return "".join(lines) + (f"assistant: {reply}\n" if reply else "")


class FakeMemory:
    """What each slot remembers, and what is in files."""

    def __init__(self, n_slots: int, folder: Path | None) -> None:
        self.slots = [Known()] * n_slots
        self.files: dict[Path, Known] = {}
        self.skipped: dict[str, str] = {}
        for path in sorted(folder.glob("*.safetensors")) if folder and folder.is_dir() else ():
            try:
                self.files[path.absolute()] = read_known(path)
            except StateFileError as error:
                self.skipped[path.name] = str(error)

    def find(self, prompt: Any) -> KnownPrefix:
        """Return where most of a conversation is known; a slot comes before a file."""
        text = told(prompt)
        n_prompt = count_tokens(text)
        best = KnownPrefix("", 0, n_prompt)
        for where, known in (("slot", self.slots), ("disk", [*self.files.values()])):
            for other in known:
                n = count_tokens(os.path.commonprefix([text, other.text]))
                if n > best.n_tokens:
                    best = KnownPrefix(where, n, n_prompt, len(other.text))
        return best

    def keep(self, prompt: Any, path: Path) -> int:
        """Write what is known of a conversation to a file; return its tokens, 0 is no file."""
        found = self.find(prompt)
        if found.n_tokens:
            self.files[path.absolute()] = Known(told(prompt), found.n_tokens)
            write_known(path, self.files[path.absolute()])
        return found.n_tokens

    def export(self, prompt: Any, path: Path) -> int:
        """Write what is known of a conversation for somebody else; return its tokens."""
        found = self.find(prompt)
        if found.n_tokens:
            write_known(path, Known(told(prompt), found.n_tokens))
        return found.n_tokens

    def adopt(self, path: Path, kept_path: Path) -> int:
        """Take over what was exported; raises StateFileError for any other file."""
        known = read_known(path)
        write_known(kept_path, known)
        self.files[kept_path.absolute()] = known
        return known.n_tokens


def write_known(path: Path, known: Known) -> None:
    """Write what a slot remembers to a file."""
    path.write_text(f"{MARK}{known.n_tokens}\n{known.text}", encoding="utf-8")


def read_known(path: Path) -> Known:
    """Return what `write_known` wrote; raises StateFileError for any other file."""
    try:
        first, _, text = path.read_text(encoding="utf-8").partition("\n")
        return Known(text, int(first.removeprefix(MARK)))
    except (OSError, ValueError) as error:
        raise StateFileError(f"“{path.name}” is no saved memory: {error}") from error
