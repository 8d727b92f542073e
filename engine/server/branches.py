"""Branches: several continuations of one slot's sequence, read together and forgotten again."""

from collections.abc import Sequence
from typing import Any

from engine.errors import ContextFullError, MachineError
from engine.server.loaded import Loaded
from engine.server.prompt_cache import PromptCache
from engine.server.slot import Slot

Tokens = tuple[int, ...]


def read_branches(
    slot: Slot, branches: Sequence[Tokens], loaded: Loaded, cache: PromptCache
) -> dict[Tokens, Any]:
    """Return the logits behind every beginning of every branch, by the tokens that lead there.

    The slot's sequence stays as it is. As many branches as there are forks go through the model at
    once. Raises ContextFullError or MachineError if there is no room.
    """
    rows: dict[Tokens, Any] = {}
    for start in range(0, len(branches), len(loaded.forks)):
        group = branches[start : start + len(loaded.forks)]
        while True:
            try:
                _read(slot, dict(zip(loaded.forks, group, strict=False)), loaded, rows)
                break
            except (ContextFullError, MachineError):
                if not cache.make_room():
                    raise
    return rows


def _read(slot: Slot, branches: dict[int, Tokens], loaded: Loaded, rows: dict[Tokens, Any]) -> None:
    memory, n_past = loaded.context.memory, len(slot.tokens)
    tokens: list[int] = []
    positions: list[int] = []
    seq_ids: list[int] = []
    behind: list[Tokens] = []
    for fork, branch in branches.items():
        tokens += branch
        positions += range(n_past, n_past + len(branch))
        seq_ids += [fork] * len(branch)
        behind += [branch[: i + 1] for i in range(len(branch))]
    try:
        for fork in branches:
            memory.seq_cp(slot.id, fork, 0, -1)
        logits = loaded.context.decode(tokens, positions, seq_ids, want=list(range(len(tokens))))
    finally:
        for fork in branches:
            memory.seq_rm(fork, 0, -1)
    rows |= zip(behind, logits, strict=True)
