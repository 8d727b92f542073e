"""Run: the memory in which a list of sampling steps works on one row of logits."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.errors import InternalError, RequestError
from engine.native.buffers import address, aligned, f64_bits
from engine.native.objects import Kernels, load
from engine.sampling import words as w

RARE = frozenset(
    (
        *("adaptive_p", "dry", "dynamic_temperature", "infill", "mirostat", "mirostat_v2"),
        *("top_n_sigma", "typical", "xtc"),
    )
)
_RADIX_BYTES = 4 * 2048  # counters of a sort, behind BACK


class Candidates(NamedTuple):
    """What a chain left, in its order: token ids int32, logits f32, probabilities f32, all [n]."""

    ids: NDArray[np.int32]
    logits: NDArray[np.float32]
    probs: NDArray[np.float32]


@cache
def kernels(unit: str = "sampling") -> Kernels:
    """Return the compiled unit "sampling" or "sampling.more"; compiles it if it must."""
    return load([unit])


def sampler_address(name: str) -> int:
    """Return where the machine code of a sampler begins; raises InternalError for none such."""
    unit = "sampling.more" if name in RARE else "sampling"
    return kernels(unit)[f"{unit}/{name}"]


def step(name: str, *operands: float) -> list[int]:
    """Return the words of one step: whole operands as they are, floats as f64 bits."""
    values = [f64_bits(x) if isinstance(x, float) else int(x) for x in operands]
    return [sampler_address(name), *values, *[0] * (w.STEP_WORDS - 1 - len(values))]


class Run:
    """Candidate arrays and scratch for a vocabulary of `n_vocab` tokens; one thread at a time.

    The system gives memory only to what a chain touches: about 4 bytes a token with the default
    samplers, 36 where the whole vocabulary has to be sorted.
    """

    def __init__(self, n_vocab: int, n_recent: int = 0) -> None:
        n = n_vocab + w.MARGIN
        longest = max(n_vocab, n_recent) + w.MARGIN
        self._kernels = kernels()
        self._ids, self._marks = aligned(n, np.int32), aligned(n, np.int32)
        self._values, self._probs, self._keys = (aligned(n, np.float32) for _ in range(3))
        self._front = aligned(8 * longest, np.uint8)
        self._back = aligned(8 * longest + _RADIX_BYTES, np.uint8)
        arrays = (self._ids, self._values, self._probs, self._keys)
        self._buffers = np.array([address(a) for a in arrays], np.int64)
        self._steps = np.zeros((0, w.STEP_WORDS), np.int64)
        self._row = np.zeros(0, np.float32)
        self.block = aligned(w.RUN_WORDS, np.int64)
        self.block[w.N_VOCAB] = n_vocab
        self.block[w.BUFFERS] = address(self._buffers)
        self.block[w.MARKS] = address(self._marks)
        self.block[w.FRONT], self.block[w.BACK] = address(self._front), address(self._back)
        self.n_vocab, self.n_recent = n_vocab, longest

    def use(self, steps: Sequence[Sequence[int]]) -> None:
        """Do these steps from now on; what their addresses point to is the caller's to keep."""
        self._steps = np.array(steps, np.int64).reshape(-1, w.STEP_WORDS)
        self.block[w.STEPS], self.block[w.N_STEPS] = address(self._steps), len(self._steps)

    def do(self, logits: NDArray) -> int:
        """Fill the candidates from a row of n_vocab logits and do the steps; return the token.

        Raises InternalError for NaN or infinite logits, RequestError if every token is forbidden.
        """
        row = logits
        if row.dtype != np.float32 or not row.flags.c_contiguous:
            row = np.ascontiguousarray(row, np.float32)
        if row.size != self.n_vocab:
            raise InternalError(f"A row of logits has {row.size} numbers, not {self.n_vocab}.")
        self._row = row  # alive while the kernel reads it
        block = self.block
        block[w.LOGITS] = address(row)
        self._kernels.call("sampling/apply", block)
        status = block[w.STATUS]
        if status != w.OK:
            self._refuse(int(status))
        return int(block[w.TOKEN])

    def _refuse(self, status: int) -> None:
        if status == w.NOT_FINITE:
            raise InternalError(
                "The model gave a score that is not a number, so no token can be chosen: "
                "its file is damaged, or this is a defect of the program."
            )
        raise RequestError(
            "Every token is forbidden here: take bans out of “logit_bias”, or loosen what "
            "limits the answer."
        )

    def candidates(self) -> Candidates:
        """Return copies of the candidates that the last `do` left, in their order."""
        n, block = int(self.block[w.SIZE]), self.block
        if n == 0:
            empty = np.zeros(0, np.float32)
            return Candidates(np.zeros(0, np.int32), empty, empty)
        start = (int(block[w.VALUES]) - address(self._values)) // 4
        part = slice(start, start + n)
        ids = np.arange(n, dtype=np.int32) if block[w.IN_ID_ORDER] else self._ids[part].copy()
        found = Candidates(ids, self._values[part].copy(), self._probs[part].copy())
        if not block[w.IS_SORTED] or block[w.N_SORTED] >= n:
            return found
        order = np.argsort(-found.logits, kind="stable")
        return Candidates(found.ids[order], found.logits[order], found.probs[order])
