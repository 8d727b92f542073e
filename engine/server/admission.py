"""Which slot takes a task, and how much of its prompt some sequence in memory already holds.

Decision: a slot whose memory would mostly be lost is not taken while an empty one is free; the
empty one shares the pages of the common prefix instead, so the other conversation stays whole.
"""

from collections.abc import Sequence
from typing import Any

from engine.server.prefix_tree import common_prefix
from engine.server.shift import move_pieces
from engine.server.slot import Slot

MIN_SIMILARITY = 0.1  # share of the new prompt that a slot must already hold to be chosen for it
MIN_KEPT = 0.5  # share of its own memory that it must keep


def find_slot(slots: Sequence[Slot], id_slot: int, prompt: Sequence[int]) -> Slot | None:
    """Return the idle slot for a prompt, or None to wait.

    In this order: the slot asked for; the one that holds the longest prefix and keeps most of its
    memory; an empty one; the longest prefix; the least recently used.
    """
    if id_slot >= 0:
        asked = slots[id_slot % len(slots)]
        return asked if asked.is_idle else None
    idle = [slot for slot in slots if slot.is_idle]
    if not idle:
        return None
    shared = {slot: common_prefix(slot.tokens, prompt) for slot in idle}
    similar = [slot for slot in idle if shared[slot] > MIN_SIMILARITY * len(prompt)]
    best = max(similar, key=lambda slot: shared[slot], default=None)
    if best is not None and shared[best] >= MIN_KEPT * len(best.tokens):
        return best
    oldest = min(reversed(idle), key=lambda slot: (bool(slot.tokens), slot.last_used_at))
    return oldest if best is None or not oldest.tokens else best


def reuse_memory(slot: Slot, slots: Sequence[Slot], memory: Any) -> int:
    """Make the slot's sequence hold as much of its prompt as any sequence does; return how much.

    Changes the slot's sequence only. At least the last prompt token is left to be decoded, unless
    its logits are remembered.
    """
    n_past = _reuse_prefix(slot, slots, memory) if slot.request.cache_prompt else 0
    if n_past and not _reaches(memory, slot.id, n_past):
        n_past = 0
    if n_past == len(slot.prompt) and slot.known_row() is None:
        n_past -= 1
    n_past = max(n_past, 0)
    if len(slot.tokens) > n_past and not memory.seq_rm(slot.id, n_past, -1):
        memory.seq_rm(slot.id, 0, -1)
        n_past = 0
    slot.truncate(n_past)
    return n_past


def _reuse_prefix(slot: Slot, slots: Sequence[Slot], memory: Any) -> int:
    """Return how many prompt tokens are in the slot's sequence now, its own or shared."""
    n_past = common_prefix(slot.tokens, slot.prompt)
    donor = max(slots, key=lambda other: common_prefix(other.tokens, slot.prompt))
    n_shared = common_prefix(donor.tokens, slot.prompt)
    wants_pieces = slot.request.n_cache_reuse > 0
    n_wanted = len(donor.tokens) if wants_pieces else n_shared
    if n_shared > n_past and _share(donor, slot, n_wanted, memory):
        n_past = n_shared
    return move_pieces(slot, n_past, memory) if wants_pieces else n_past


def _share(donor: Slot, slot: Slot, n_tokens: int, memory: Any) -> bool:
    """Let the slot's sequence share the first `n_tokens` of the donor's; False if they are gone."""
    if not _reaches(memory, donor.id, n_tokens):
        return False
    memory.seq_rm(slot.id, 0, -1)
    memory.seq_cp(donor.id, slot.id, 0, n_tokens)
    slot.tokens = donor.tokens[:n_tokens]
    slot.prompt_row = donor.prompt_row
    slot.truncate(n_tokens)
    return True


def _reaches(memory: Any, seq_id: int, n_past: int) -> bool:
    """Return whether everything that position `n_past` looks back at is still in memory."""
    window = getattr(memory, "window", 0)
    needed = max(0, n_past + 1 - window) if window else 0
    return 0 <= memory.seq_pos_min(seq_id) <= needed


def free_idle(slots: Sequence[Slot], memory: Any) -> bool:
    """Forget the memory of the least recently used idle slot; False when there is none to free."""
    with_tokens = [slot for slot in slots if slot.is_idle and slot.tokens]
    if not with_tokens:
        return False
    oldest = min(with_tokens, key=lambda slot: slot.last_used_at)
    memory.seq_rm(oldest.id, 0, -1)
    oldest.truncate(0)
    return True
