"""Slot tasks: save what a slot remembers to a file, read it back, forget it."""

import time
from dataclasses import dataclass

from engine.errors import ContextFullError
from engine.server.loaded import Context
from engine.server.slot import Slot
from engine.server.task import Task, TaskKind


@dataclass(frozen=True)
class SlotFile:
    """What a slot task did: the slot, its file ("" for erase), tokens moved, milliseconds."""

    id_slot: int
    path: str
    n_tokens: int
    elapsed_ms: float


def run_slot_task(task: Task, slot: Slot, context: Context) -> SlotFile:
    """Do a save, restore or erase on an idle slot.

    Raises StateFileError with the slot's memory unchanged, or ContextFullError with it empty.
    """
    started_at = time.monotonic()
    if task.kind is TaskKind.SLOT_SAVE:
        context.save_sequence(slot.id, task.path)
        n_tokens = len(slot.tokens)
    elif task.kind is TaskKind.SLOT_RESTORE:
        n_tokens = _restore(task.path, slot, context)
    else:
        n_tokens = len(slot.tokens)
        context.memory.seq_rm(slot.id, 0, -1)
        slot.truncate(0)
    slot.last_used_at = time.monotonic()
    elapsed_ms = (slot.last_used_at - started_at) * 1000
    return SlotFile(slot.id, task.path, n_tokens, elapsed_ms)


def _restore(path: str, slot: Slot, context: Context) -> int:
    tokens = [int(token) for token in context.restore_sequence(slot.id, path)]
    slot.truncate(0)
    if len(tokens) >= slot.n_ctx:
        context.memory.seq_rm(slot.id, 0, -1)
        raise ContextFullError(
            f"The saved conversation has {len(tokens)} tokens and the context holds "
            f"{slot.n_ctx}: open the model with a larger context."
        )
    slot.tokens = tokens
    return len(tokens)
