"""Moving what a slot remembers: a full context drops its middle, matching pieces change place.

Decision: answers that share a prompt shift too, each for itself; a shared page is copied before
its cells move.
"""

from collections.abc import Callable, Sequence
from typing import Any

from engine.errors import ContextFullError, RequestError
from engine.server.slot import Slot

LEAST_TAIL = 4  # tokens that never belong to the kept beginning
MakeRoom = Callable[[], bool]  # frees pages that nobody needs now; False if there are none


def shift_context(slot: Slot, memory: Any, bos: int, make_room: MakeRoom) -> bool:
    """Drop tokens after the kept beginning of a full slot; return whether there is room now.

    `n_keep` tokens of the request stay (-1: the prompt), and the beginning token; `n_discard` are
    dropped, or half of the others. What follows moves down, its K turned to the new positions.
    """
    request, n_tokens = slot.request, len(slot.tokens)
    n_keep = request.n_keep if request.n_keep >= 0 else len(slot.prompt)
    n_keep += bool(slot.prompt) and slot.prompt[0] == bos
    n_keep = max(0, min(slot.n_ctx - LEAST_TAIL, n_keep, n_tokens))
    n_left = n_tokens - n_keep
    n_discard = min(request.n_discard or n_left // 2, n_left - 1)
    if n_discard <= 0:
        return False
    end = n_keep + n_discard
    has_moved = _close_gap(slot.id, (n_keep, end, n_tokens), memory, make_room)
    tail = slot.tokens[end:] if has_moved else []
    if not has_moved and not memory.seq_rm(slot.id, n_keep, -1):
        memory.seq_rm(slot.id, 0, -1)
        n_keep = 0
    slot.truncate(n_keep)
    slot.tokens.extend(tail)
    slot.is_truncated = True
    return has_moved


def move_pieces(slot: Slot, n_past: int, memory: Any, make_room: MakeRoom) -> int:
    """Move pieces of old memory that come again later in the prompt to where they belong.

    Pieces of at least `n_cache_reuse` tokens count. Returns how many prompt tokens memory holds
    now, beginning at `n_past` of them; the slot's tokens beyond are void.
    """
    least = slot.request.n_cache_reuse
    old, prompt = list(slot.tokens), list(slot.prompt)
    kept = old[:n_past]
    at = n_past
    while at < len(old) and len(kept) < len(prompt):
        # Compared as slices first: a text of one repeated token must not take quadratic Python.
        wanted = prompt[len(kept) : len(kept) + least]
        if len(wanted) < least or old[at : at + least] != wanted:
            at += 1
            continue
        n_match = _match(old, at, prompt, len(kept))
        if not _close_gap(slot.id, (len(kept), at, at + n_match), memory, make_room):
            break
        kept += old[at : at + n_match]
        at += n_match
    if len(old) > len(kept) or len(kept) > n_past:
        if not memory.seq_rm(slot.id, len(kept), -1):
            memory.seq_rm(slot.id, 0, -1)
            kept, n_past = [], 0
        slot.truncate(n_past)
        slot.tokens.extend(kept[n_past:])
    return len(kept)


def _close_gap(seq_id: int, bounds: tuple[int, int, int], memory: Any, make_room: MakeRoom) -> bool:
    """Forget the positions [start, end) and move [end, last) down; False if that cannot be.

    Pages shared with others are copied for it, so idle memory may have to go, and there may not be
    enough; and a window may have let go of what would come into sight. Then the positions from
    `start` on are in no order and to be forgotten.
    """
    start, end, last = bounds
    try:
        if not _with_room(lambda: memory.seq_rm(seq_id, start, end), make_room):
            return False
        _with_room(lambda: memory.seq_add(seq_id, end, last, start - end), make_room)
    except RequestError:
        return False
    return True


def _with_room(act: Callable[[], Any], make_room: MakeRoom) -> Any:
    """Do what changes nothing when memory is full, again each time that there is more room."""
    while True:
        try:
            return act()
        except ContextFullError:
            if not make_room():
                raise


def _match(old: Sequence[int], at: int, prompt: Sequence[int], to: int) -> int:
    n, n_max = 0, min(len(old) - at, len(prompt) - to)
    while n < n_max and old[at + n] == prompt[to + n]:
        n += 1
    return n
