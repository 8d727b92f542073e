"""The compute team: threads parked between steps, which run a tape together without the GIL.

Decision: members are pinned one per core, and the caller is member 0. Unpinned threads that spin
settle on one core when another program is busy (measured: 500 us per op instead of 10). The caller
is pinned only while it runs a tape, or for as long as it says so with `adopted`; nothing else in
the process, and no child process, inherits a pin. Workers run at a lower priority, so that the
window wins a core at once when it wakes.
"""

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from engine.compute.cpu import cores, team_words
from engine.errors import InternalError
from engine.native import objects
from engine.native.buffers import address, aligned

UNIT = "team"
MAX_THREADS = 256
N_SPINS = 3000  # pauses: 50 to 100 us


class Team:
    """`n_threads` members including the caller of `run`. A context manager; `close` joins them."""

    def __init__(
        self, n_threads: int, pin: bool = True, kernels: objects.Kernels | None = None
    ) -> None:
        """Start the workers. `kernels` holds unit "team" if the caller has loaded it already."""
        if not 1 <= n_threads <= MAX_THREADS:
            raise InternalError(f"A team has 1 to {MAX_THREADS} threads, not {n_threads}.")
        self.n_threads = n_threads
        self._kernels = kernels if kernels is not None else objects.load([UNIT])
        self._block = aligned(team_words.block_words(n_threads), np.int64)
        found = cores.cores()
        fits = pin and n_threads <= len(found)
        self._cpus: list[int | None] = [*found[:n_threads]] if fits else [None] * n_threads
        n_cores = len(found) or os.cpu_count() or 1
        # Threads that share a core must not spin for each other.
        self._set(team_words.SPINS, N_SPINS if n_threads <= n_cores else 1)
        self._running = threading.Lock()
        self._adopter: int | None = None
        self._workers = [
            threading.Thread(
                target=_work,
                args=(self._kernels, self._block, i, n_threads, self._cpus[i]),
                name=f"compute {i}",
                daemon=True,
            )
            for i in range(1, n_threads)
        ]
        for worker in self._workers:
            worker.start()
        # Also runs when the program ends: native threads must not outlive the machine code.
        self._finalizer = weakref.finalize(
            self, _stop, self._kernels, self._block, self._workers, n_threads
        )

    def __enter__(self) -> "Team":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def run(self, tape: NDArray[np.int64], n_threads: int | None = None) -> bool:
        """Execute int64[n_ops, 3] (kernel address, argument block, barrier after) on n_threads.

        Returns when every thread is done: True, or False if `abort` stopped it at a barrier and
        what it was to compute is incomplete. One run at a time.
        """
        n = self.n_threads if n_threads is None else n_threads
        if not 1 <= n <= self.n_threads:
            raise InternalError(f"A run uses 1 to {self.n_threads} threads of this team, not {n}.")
        if tape.dtype != np.int64 or tape.ndim != 2 or tape.shape[1] != 3:
            raise InternalError(f"A tape is int64[n_ops, 3], not {tape.dtype}{tape.shape}.")
        if not tape.flags.c_contiguous:
            raise InternalError("A tape must be contiguous in memory.")
        if not self._finalizer.alive:
            raise InternalError("This team is closed.")
        if not self._running.acquire(blocking=False):
            raise InternalError("This team is running a tape already.")
        try:
            return self._run(tape, n)
        finally:
            self._running.release()

    def _run(self, tape: NDArray[np.int64], n: int) -> bool:
        self._set(team_words.TAPE, address(tape))
        self._set(team_words.N_OPS, len(tape))
        is_adopted = self._adopter == threading.get_ident()
        with contextlib.nullcontext() if is_adopted else cores.pinned(self._cpus[0]):
            self._kernels.call(f"{UNIT}/run_command", self._block, 0, n)
        if not self._get(team_words.STOPPED):
            return True
        self._set(team_words.CANCEL, 0)
        return False

    def abort(self) -> None:
        """Stop the run in progress at its next barrier, or else the next run before its first op.

        May be called from any thread; that run returns False.
        """
        self._set(team_words.CANCEL, 1)

    def forget_abort(self) -> bool:
        """Let the next run be as if `abort` had not been called; return whether it had.

        Not during a run.
        """
        was_wanted = bool(self._get(team_words.CANCEL))
        self._set(team_words.CANCEL, 0)
        return was_wanted

    @contextlib.contextmanager
    def adopted(self) -> Iterator[None]:
        """Make the calling thread member 0 inside the block: pinned, and lowered for good.

        For the engine thread, whose life is running tapes; it saves two system calls per run.
        """
        cores.lower_priority()
        self._adopter, before = threading.get_ident(), self._adopter
        try:
            with cores.pinned(self._cpus[0]):
                yield
        finally:
            self._adopter = before

    def close(self) -> None:
        """Stop and join the workers, after the run in progress; closing again does nothing."""
        with self._running:
            self._finalizer()

    def _get(self, offset: int) -> int:
        return int(self._block[offset // 8])

    def _set(self, offset: int, value: int) -> None:
        self._block[offset // 8] = value


def _work(
    kernels: objects.Kernels, block: NDArray[np.int64], i: int, n_threads: int, cpu: int | None
) -> None:
    """Live as member i until the team closes."""
    cores.lower_priority()
    with cores.pinned(cpu):
        kernels.call(f"{UNIT}/worker_main", block, i, n_threads)


def _stop(
    kernels: objects.Kernels,
    block: NDArray[np.int64],
    workers: list[threading.Thread],
    n_threads: int,
) -> None:
    """Tell the workers to quit and wait for them."""
    kernels.call(f"{UNIT}/quit_workers", block, 0, n_threads)
    for worker in workers:
        worker.join()
