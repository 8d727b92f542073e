"""The places where a prefix is known besides a slot: pages held by reference, and files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(eq=False)
class Parked:
    """What a sequence remembered when it was about to lose it: its pages, held by a snapshot.

    `prompt_row` is (prompt length, logits after that prompt) where they are known.
    """

    tokens: list[int]
    snapshot: Any
    prompt_row: tuple[int, Any] | None
    last_used_at: float


@dataclass(eq=False)
class OnDisk:
    """A file that holds a sequence; `last_used_at` is by the clock on the wall.

    `checkpoints` are the numbers of its tokens that one can go back to, where windows forget.
    """

    path: Path
    n_tokens: int
    n_bytes: int
    last_used_at: float
    checkpoints: tuple[int, ...] = ()


@dataclass(frozen=True)
class KnownPrefix:
    """Where most of a conversation is known: "slot", "memory", "disk", or "" for nowhere.

    `n_tokens` of its `n_prompt` tokens need not be read again. From a slot or from memory the next
    answer begins at once, from the disk after a short load of `n_bytes`.
    """

    where: str
    n_tokens: int
    n_prompt: int
    n_bytes: int = 0
