"""Which slot takes a task.

Decision: a slot whose memory would mostly be lost is not taken while an empty one is free; the
empty one shares the pages of the common prefix instead, so the other conversation stays whole.
"""

from collections.abc import Sequence

from engine.server.prefix_tree import common_prefix
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
