"""Places of buffers in one stretch of memory: a buffer that is read no more gives its place up."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

ALIGNMENT = 64


@dataclass(eq=False)
class Buffer:
    """Bytes that some ops write and others read; `start` is its place once it is known."""

    n_bytes: int
    start: int = -1


@dataclass(frozen=True)
class Touch:
    """What one op reads and writes: buffers, and marks for what lies elsewhere (a layer's K, V)."""

    reads: tuple[Hashable, ...]
    writes: tuple[Hashable, ...]


def place_buffers(touches: Sequence[Touch]) -> int:
    """Give every buffer a start, reusing places of dead ones; return the bytes of it all."""
    last_use: dict[Buffer, int] = {}
    for i, touch in enumerate(touches):
        for one in (*touch.reads, *touch.writes):
            if isinstance(one, Buffer):
                last_use[one] = i
    dying: dict[int, list[Buffer]] = {}
    for one, i in last_use.items():
        dying.setdefault(i, []).append(one)
    space = _Space()
    for i, touch in enumerate(touches):
        for one in touch.writes:
            if isinstance(one, Buffer) and one.start < 0:
                one.start = space.take(one.n_bytes)
        for one in dying.get(i, ()):
            space.give_back(one.start, one.n_bytes)
    return space.end


class _Space:
    """Free stretches, in order; the last one reaches to the end of what was ever taken."""

    def __init__(self) -> None:
        self.free: list[tuple[int, int]] = []
        self.end = 0

    def take(self, n_bytes: int) -> int:
        size = _rounded(n_bytes)
        fitting = [(length, start) for start, length in self.free if length >= size]
        if fitting:
            length, start = min(fitting)
            self.free.remove((start, length))
            if length > size:
                self._insert(start + size, length - size)
            return start
        if self.free and sum(self.free[-1]) == self.end:
            start, _ = self.free.pop()
        else:
            start = self.end
        self.end = start + size
        return start

    def give_back(self, start: int, n_bytes: int) -> None:
        self._insert(start, _rounded(n_bytes))

    def _insert(self, start: int, length: int) -> None:
        before = [piece for piece in self.free if piece[0] + piece[1] == start]
        after = [piece for piece in self.free if start + length == piece[0]]
        for piece in (*before, *after):
            self.free.remove(piece)
            start, length = min(start, piece[0]), length + piece[1]
        self.free.append((start, length))
        self.free.sort()


def _rounded(n_bytes: int) -> int:
    return -(-max(n_bytes, 1) // ALIGNMENT) * ALIGNMENT


def barriers_after(touches: Sequence[Touch]) -> list[bool]:
    """Return after which ops the threads must meet: before one that conflicts with its group.

    Two ops conflict when one writes what the other reads or writes; buffers that share a place
    count as the same.
    """
    needed = [False] * len(touches)
    reads: list[Hashable] = []
    writes: list[Hashable] = []
    for i, touch in enumerate(touches):
        clashes = _overlap(touch.writes, reads) or _overlap((*touch.writes, *touch.reads), writes)
        if clashes:
            needed[i - 1] = True
            reads, writes = [], []
        reads += touch.reads
        writes += touch.writes
    return needed


def _overlap(some: Sequence[Hashable], others: Sequence[Hashable]) -> bool:
    return any(_same_place(one, other) for one in some for other in others)


def _same_place(one: Hashable, other: Hashable) -> bool:
    if isinstance(one, Buffer) and isinstance(other, Buffer):
        return one.start < other.start + other.n_bytes and other.start < one.start + one.n_bytes
    return one == other
