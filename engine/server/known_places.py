"""KnownPlaces: all places where a prefix is known, under one tree, for any thread to ask."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.server.places import KnownPrefix, OnDisk, Parked
from engine.server.prefix_tree import PrefixTree, common_prefix
from engine.server.saved_prompts import SavedPrompts
from engine.server.slot import Slot

Place = Slot | Parked | OnDisk

LEAST_LOSS = 8  # tokens that are read again sooner than they are kept


class KnownPlaces:
    """Slots, parked prompts and files with the tokens that they know."""

    def __init__(self, saved: SavedPrompts) -> None:
        self.saved = saved
        self.slots: Sequence[Slot] = ()
        self._memory: Any = None
        self._tree: PrefixTree[Place] = PrefixTree()
        self._lock = threading.Lock()

    def attach(self, context: Any, slots: Sequence[Slot]) -> None:
        """Serve the slots of a context, whose memory is empty."""
        self._memory, self.slots = context.memory, slots

    def find_files(self, context: Any) -> None:
        """Look at the saved conversations that fit a context; done once."""
        for file, tokens in self.saved.scan(context.peek_saved):
            if getattr(context.memory, "window", 0):
                file.checkpoints = context.peek_checkpoints(file.path)
            self.put(file, tokens)

    def detach(self) -> None:
        """Forget what was in the memory of the context, which is gone."""
        self._memory = None
        with self._lock:
            for place in self._tree.places():
                if not isinstance(place, OnDisk):
                    self._tree.drop(place)

    @property
    def has_window(self) -> bool:
        """Return whether the memory cannot go back to any position that it once held."""
        return bool(getattr(self._memory, "window", 0))

    # ------------------------------------------------------------- asking

    def matches(
        self, tokens: Sequence[int], left_out: Place | None = None
    ) -> list[tuple[Place, int]]:
        """Return every place that shares a beginning, the longest first, with how many tokens."""
        with self._lock:
            found = [each for each in self._tree.matches(tokens) if each[0] is not left_out]
        return found

    def best_of(self, tokens: Sequence[int]) -> list[tuple[Place, int]]:
        """Return the places from which the most of a conversation can go on, the best first."""
        found = []
        for place, n_shared in self.matches(tokens):
            n = common_prefix(place.tokens, tokens) if isinstance(place, Slot) else n_shared
            if n := self.reach(place, n):
                found.append((place, n))
        return sorted(found, key=lambda each: (-each[1], isinstance(each[0], OnDisk)))

    def find(self, tokens: Sequence[int]) -> KnownPrefix:
        """Return where most of these tokens are known."""
        best = next(iter(self.best_of(tokens)), None)
        if best is None:
            return KnownPrefix("", 0, len(tokens))
        place, n = best
        if isinstance(place, OnDisk):
            return KnownPrefix("disk", n, len(tokens), place.n_bytes)
        return KnownPrefix("slot" if isinstance(place, Slot) else "memory", n, len(tokens))

    def reach(self, place: Place, n_past: int) -> int:
        """Return how many of the first `n_past` tokens of a place one can go on behind.

        Where layers have a window, it depends on what they still remember.
        """
        memory = self._memory
        window = getattr(memory, "window", 0)
        if not window:
            return n_past
        if isinstance(place, OnDisk):
            if n_past == place.n_tokens:
                return n_past
            return max((n for n in place.checkpoints if n <= n_past), default=0)
        if isinstance(place, Slot):
            pos_min = memory.seq_pos_min(place.id)
        else:
            pos_min = place.snapshot.pos_min
        return n_past if 0 <= pos_min <= max(0, n_past + 1 - window) else 0

    def knows(self, tokens: Sequence[int], left_out: Place, *, exactly: bool = False) -> bool:
        """Return whether memory could go on behind these tokens, or almost, from another place."""
        n_least = len(tokens) if exactly else len(tokens) - LEAST_LOSS + 1
        return any(
            n >= n_least and not isinstance(place, OnDisk) and self.reach(place, n) == n
            for place, n in self.matches(tokens, left_out)
        )

    def in_memory(self) -> list[tuple[Slot | Parked, list[int]]]:
        """Return what only memory knows, the most recently used first."""
        with self._lock:
            found = [
                (place, self._tree.tokens(place))
                for place in self._tree.places()
                if not isinstance(place, OnDisk)
            ]
        found.sort(key=lambda each: (each[0].last_used_at, len(each[1])), reverse=True)
        chosen: list[tuple[Slot | Parked, list[int]]] = []
        for place, tokens in found:
            is_chosen = any(common_prefix(other, tokens) == len(tokens) for _, other in chosen)
            matches = self.matches(tokens)
            is_saved = any(isinstance(p, OnDisk) and n == len(tokens) for p, n in matches)
            if len(tokens) >= LEAST_LOSS and not is_chosen and not is_saved:
                chosen.append((place, tokens))
        return chosen

    # ------------------------------------------------------------- noting

    def note(self, slot: Slot) -> None:
        """Bring up to date what is known of a slot."""
        self.put(slot, slot.tokens)

    def put(self, place: Place, tokens: Sequence[int]) -> None:
        """Note what a place knows."""
        with self._lock:
            self._tree.put(place, tokens)

    def drop(self, place: Place) -> None:
        """Forget a place."""
        with self._lock:
            self._tree.drop(place)

    def add_file(
        self, path: Path, tokens: Sequence[int], checkpoints: tuple[int, ...] = ()
    ) -> None:
        """Note that a file was just written with the memory of these tokens."""
        before = self.saved.find(path)
        file, deleted = self.saved.add(path, len(tokens), checkpoints)
        self.put(file, tokens)
        for gone in (*deleted, before):
            if gone is not None:
                self.drop(gone)

    def forget_file(self, path: Path, *, deletes: bool = False) -> None:
        """Start no prompt from a file any more, and delete it if asked to."""
        file = self.saved.forget(path, deletes=deletes)
        if file is not None:
            self.drop(file)
