"""Tape: a flat array of (kernel address, argument block, barrier flag), written once, run often."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.compute.cpu.arena import Buffer, Touch, barriers_after
from engine.compute.cpu.signatures import pack, words
from engine.native.buffers import address, aligned

COUNTER_BYTES = 64  # its own cache line


class Addresses(Protocol):
    """Kernel addresses by name, "unit/kernel"."""

    def __getitem__(self, name: str) -> int:
        """Return the address of a kernel."""


class Answer:
    """Stands for the buffer of the result: it lies where the caller says, anew for every run."""


class Counter:
    """Stands in a word for the address of a counter of the op's own."""


@dataclass(frozen=True)
class KernelCall:
    """One op of a plan: the kernel, its words (numbers or buffers), what it touches."""

    kernel: str
    words: Mapping[str, int | Buffer | Answer | Counter]
    touch: Touch


class Tape:
    """int64[n_ops, 3] in `ops`; `aim` sets where the answer goes before a run."""

    def __init__(
        self, calls: Sequence[KernelCall], addresses: Addresses, arena: NDArray[np.uint8]
    ) -> None:
        self.n_ops = len(calls) + 1
        self.arena = arena
        self.ops = aligned((self.n_ops, 3), np.int64)
        starts, n_words = [0], 8
        for call in calls:
            starts.append(n_words)
            n_words += -(-len(words(call.kernel)) // 8) * 8
        self.blocks = aligned(n_words, np.int64)
        n_counters = sum(isinstance(w, Counter) for call in calls for w in call.words.values())
        self.counters = aligned(max(1, n_counters) * COUNTER_BYTES // 8, np.int64)
        self._answers: list[int] = []
        self._used_counters = 0
        clear = pack("pointwise/clear", counters=address(self.counters), n_words=len(self.counters))
        self._write(0, addresses["pointwise/clear"], 0, clear, True)
        barriers = barriers_after([call.touch for call in calls])
        for i, call in enumerate(calls):
            values = self._resolve(call, starts[i + 1])
            block = pack(call.kernel, **values)
            self._write(i + 1, addresses[call.kernel], starts[i + 1], block, barriers[i])

    def _write(
        self, i: int, kernel: int, start: int, block: NDArray[np.int64], barrier: bool
    ) -> None:
        self.blocks[start : start + len(block)] = block
        self.ops[i] = kernel, address(self.blocks) + 8 * start, barrier

    def _resolve(self, call: KernelCall, start: int) -> dict[str, int]:
        resolved: dict[str, int] = {}
        for name, value in call.words.items():
            if isinstance(value, Counter):
                resolved[name] = address(self.counters) + COUNTER_BYTES * self._used_counters
                self._used_counters += 1
            elif isinstance(value, Answer):
                self._answers.append(start + words(call.kernel).index(name))
                resolved[name] = 0
            elif isinstance(value, Buffer):
                resolved[name] = address(self.arena) + value.start
            else:
                resolved[name] = int(value)
        return resolved

    def aim(self, answer: int) -> None:
        """Let the next runs write their result from this address on."""
        self.blocks[self._answers] = answer
