"""PromptCache: how a slot comes to start from the longest prefix that is known anywhere.

Three tiers: the sequences of the slots; what sequences remembered before, its pages held by
reference (sharing them back costs nothing); and files. What a slot is about to lose is held first.
The least recently used goes when memory is short or a limit is reached; what a busy slot remembers
never does.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from engine.errors import ContextFullError, EngineError, StateFileError
from engine.server.file_thread import FileThread
from engine.server.known_places import LEAST_LOSS, KnownPlaces, Place
from engine.server.places import OnDisk, Parked
from engine.server.prefix_tree import common_prefix
from engine.server.shift import move_pieces
from engine.server.slot import Slot

log = logging.getLogger(__name__)

MAX_PARKED = 256
LOAD_COST = 1 / 20  # of reading as many tokens


class PromptCache:
    """The memory of one context behind all places. Engine thread only."""

    def __init__(
        self, known: KnownPlaces, files: FileThread, context: Any, limit_bytes: int
    ) -> None:
        self.known = known
        self.parked: list[Parked] = []
        self.n_bytes_held = 0  # of pages that only parked prompts hold
        self._files = files
        self._context = context
        self._memory = context.memory
        self._limit_bytes = limit_bytes
        self.last_resort: Callable[[], bool] = lambda: False  # frees pages of what is no answer
        self._pinned: Place | None = None  # where a slot is just starting from

    # ------------------------------------------------------------- starting a prompt

    def bring(self, slot: Slot) -> int | None:
        """Make the slot's sequence hold as much of its prompt as is known anywhere.

        Returns how much, or None while it is still being read from a file: ask again then. At
        least the last prompt token is left to be decoded, unless its logits are remembered.
        """
        arriving = slot.arriving
        if arriving is not None and not arriving[1].done():
            return None
        for other in self.known.slots:
            self.known.note(other)
        refused: set[Place] = set()
        while True:
            place, n_past = self._choose(slot, refused)
            if place is slot:
                break
            if isinstance(place, OnDisk) and (arriving is None or arriving[0] is not place):
                slot.arriving = place, self._begin_reading(place)
                return None
            try:
                self._pinned = place
                self._start_from(place, n_past, slot)
                break
            except EngineError as error:
                log.info("slot %d cannot start from %s: %s", slot.id, type(place).__name__, error)
                refused.add(place)
            finally:
                self._pinned = None
        slot.arriving = None
        n_past = self._settle(slot, place, n_past)
        self._keep_limits()
        return n_past

    def _choose(self, slot: Slot, refused: set[Place]) -> tuple[Place, int]:
        """Return the best place to start from and how many prompt tokens it gives; or the slot."""
        if not slot.request.cache_prompt:
            return slot, 0
        prompt = slot.prompt
        best: Place = slot
        n_best = score = self._usable(slot, common_prefix(slot.tokens, prompt), prompt)
        for place, n_shared in self.known.matches(prompt, slot):
            if n_shared <= score:
                break
            if place in refused:
                continue
            n = self._usable(place, n_shared, prompt)
            cost = int(place.n_tokens * LOAD_COST) if isinstance(place, OnDisk) else 0
            if n - cost > score:
                best, n_best, score = place, n, n - cost
        return best, n_best

    def _usable(self, place: Place, n_shared: int, prompt: Sequence[int]) -> int:
        """Return how many of the shared tokens a slot may start behind, 0 if it cannot."""
        if n_shared == len(prompt) and not isinstance(place, OnDisk):  # a file may hold the row
            row = place.prompt_row
            n_shared -= row is None or row[0] != n_shared
        return self.known.reach(place, n_shared)

    def _begin_reading(self, file: OnDisk) -> Any:
        context = self._context
        return self._files.read(lambda: context.read_saved(file.path))

    def _start_from(self, place: Place, n_past: int, slot: Slot) -> None:
        """Let the slot's sequence share or load what a place holds; raises EngineError."""
        self.hold(slot)
        self._memory.seq_rm(slot.id, 0, -1)
        slot.truncate(0)
        if isinstance(place, Slot):
            n_wanted = len(place.tokens) if slot.request.n_cache_reuse else n_past
            self._memory.seq_cp(place.id, slot.id, 0, n_wanted)
            slot.tokens, slot.prompt_row = place.tokens[:n_wanted], place.prompt_row
        elif isinstance(place, Parked):
            slot.tokens = self._context.restore_snapshot(place.snapshot, slot.id)
            slot.prompt_row, place.last_used_at = place.prompt_row, time.monotonic()
        else:
            slot.tokens, slot.prompt_row = self._load(place, n_past, slot)
        slot.truncate(len(slot.tokens))

    def _load(
        self, file: OnDisk, n_past: int, slot: Slot
    ) -> tuple[list[int], tuple[int, Any] | None]:
        """Take over what was read from a file, making room for it."""
        assert slot.arriving is not None
        try:
            saved = slot.arriving[1].result()
        except StateFileError:
            self.known.forget_file(file.path)
            raise
        if n_past in saved.checkpoints:
            saved = saved.first(n_past)
        tokens = self.restore(saved, slot)
        self.known.saved.touch(file)
        return tokens, saved_row(saved)

    def restore(self, saved: Any, slot: Slot) -> list[int]:
        """Copy a sequence that was read into the slot's, making room; return its tokens.

        Raises StateFileError or ContextFullError if it does not fit; the slot may be empty then.
        """
        if len(saved.tokens) >= slot.n_ctx:
            raise ContextFullError(
                f"The saved conversation has {len(saved.tokens)} tokens and the context holds "
                f"{slot.n_ctx}: open the model with a larger context."
            )
        while True:
            try:
                return self._context.restore_saved(saved, slot.id)
            except (StateFileError, ContextFullError):
                if not self.make_room(slot):
                    raise

    def _settle(self, slot: Slot, place: Place, n_past: int) -> int:
        """Cut the slot's sequence behind what it shares with its prompt; return how much.

        A file may have been written anew since it was chosen, so what came is compared again.
        """
        n_past = min(n_past, common_prefix(slot.tokens, slot.prompt))
        if slot.request.n_cached_most >= 0:
            n_past = min(n_past, slot.request.n_cached_most)
        if slot.request.cache_prompt and slot.request.n_cache_reuse:
            n_past = move_pieces(slot, n_past, self._memory, self.make_room)
        elif place is slot:
            self.hold(slot, n_past)
        if n_past == len(slot.prompt) and slot.known_row() is None:
            n_past -= 1
        if len(slot.tokens) > n_past and not self._memory.seq_rm(slot.id, n_past, -1):
            self._memory.seq_rm(slot.id, 0, -1)
            n_past = 0
        slot.truncate(n_past)
        if isinstance(place, Parked) and n_past >= len(place.tokens):
            self._release(place)
        self.mark(slot)
        return n_past

    # ------------------------------------------------------------- keeping and letting go

    def mark(self, slot: Slot) -> None:
        """Note what a slot knows; hold it if its memory could not go back to it later."""
        self.known.note(slot)
        if self.known.has_window and slot.request.cache_prompt:
            self.hold(slot, exactly=True)

    def hold(self, slot: Slot, n_kept: int = 0, *, exactly: bool = False) -> None:
        """Hold what the slot's sequence knows if more than `n_kept` tokens of it would be lost."""
        if len(slot.tokens) - n_kept < LEAST_LOSS:
            return
        if self.known.knows(slot.tokens, slot, exactly=exactly):
            return
        try:
            snapshot = self._context.snapshot_sequence(slot.id)
        except EngineError:
            log.warning("what slot %d knew is lost", slot.id, exc_info=True)
            return
        parked = Parked(list(slot.tokens), snapshot, slot.prompt_row, time.monotonic())
        self.parked.append(parked)
        self.known.put(parked, parked.tokens)

    def _keep_limits(self) -> None:
        """Let go of the least recently used until the limits hold."""
        self.n_bytes_held = self._count_bytes()
        while self.parked and (
            len(self.parked) > MAX_PARKED or self.n_bytes_held > self._limit_bytes
        ):
            self._release(min(self.parked, key=lambda one: one.last_used_at))
            self.n_bytes_held = self._count_bytes()

    def _count_bytes(self) -> int:
        return self._memory.stats()["bytes_kept"] if self.parked else 0

    def _release(self, parked: Parked) -> None:
        parked.snapshot.release()
        self.parked.remove(parked)
        self.known.drop(parked)

    def make_room(self, *pinned: Slot) -> bool:
        """Let go of the least recently used that no busy slot needs; False if there is none."""
        parked = [one for one in self.parked if one is not self._pinned]
        if parked:
            self._release(min(parked, key=lambda one: one.last_used_at))
            return True
        slots = (slot for slot in self.known.slots if slot.is_idle and slot.tokens)
        idle = [slot for slot in slots if slot is not self._pinned and slot not in pinned]
        if not idle:
            return self.last_resort()
        self.forget(min(idle, key=lambda slot: slot.last_used_at))
        return True

    def forget(self, slot: Slot) -> None:
        """Empty a slot's memory."""
        self._memory.seq_rm(slot.id, 0, -1)
        slot.truncate(0)
        self.known.note(slot)
        self._keep_limits()

    def begin_anew(self) -> None:
        """Forget everything, whatever the books of the memory say; nobody may be busy."""
        for parked in self.parked:
            self.known.drop(parked)
        self.parked.clear()
        for slot in self.known.slots:
            slot.truncate(0)
            self.known.note(slot)
        self._memory.begin_anew()
        self._keep_limits()

    def close(self) -> None:
        """Let go of everything: the context is about to end."""
        for parked in self.parked:
            parked.snapshot.release()
        self.parked.clear()


def saved_row(saved: Any) -> tuple[int, Any] | None:
    """Return the logits that a file remembers, with the length of their prompt."""
    extras = saved.extras
    if "row" not in extras or len(extras.get("n_prompt", ())) != 1:
        return None
    n_prompt = int(extras["n_prompt"][0])
    return (n_prompt, extras["row"].copy()) if 0 < n_prompt <= len(saved.tokens) else None
