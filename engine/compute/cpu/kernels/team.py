"""What the threads of a team run: one command after another, op by op, meeting at barriers.

A waiter spins for some 50 us, then sleeps in the kernel until the word changes: a thread whose
partner lost its core gives its own back instead of burning the partner's time slice. The words of
the block lie so that spinning does not disturb writers (engine/compute/cpu/team_words.py).
"""

import platform
import sys

from engine.compute.cpu.team_words import (
    ARRIVED,
    ASLEEP,
    CANCEL,
    COMMAND,
    EXPECTED,
    GENERATION,
    LINE,
    N_OPS,
    N_RUNNING,
    OP_BYTES,
    QUIT,
    SLEEPERS,
    SPINS,
    STOPPED,
    TAPE,
    WORKERS,
)
from engine.native.simd import (
    atomic_add,
    atomic_load,
    atomic_store,
    c_function,
    call_kernel,
    callee,
    callee_out_of_line,
    load_i64,
    pause,
    store_i64,
)

_FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}.get(platform.machine())
EVERYONE = 0x7FFFFFFF


def _sleep_and_wake():
    """Return sleep(addr, old, expected) and wake(addr) of this system.

    sleep returns when the word at addr may have changed from `old`; it may return early.
    """
    if sys.platform == "linux" and _FUTEX:
        syscall, number, wait_private, wake_private = c_function("syscall", 7), _FUTEX, 128, 129

        @callee
        def sleep(addr, old, expected):
            syscall(number, addr, wait_private, old & 0xFFFFFFFF, 0, 0, 0)

        @callee
        def wake(addr):
            syscall(number, addr, wake_private, EVERYONE, 0, 0, 0)

    elif sys.platform == "win32":
        wait_on_address = c_function("WaitOnAddress", 4)
        wake_all = c_function("WakeByAddressAll", 4)

        @callee
        def sleep(addr, old, expected):
            store_i64(expected, old)
            wait_on_address(addr, expected, 8, 0xFFFFFFFF)

        @callee
        def wake(addr):
            wake_all(addr, 0, 0, 0)

    elif sys.platform == "darwin":
        ulock_wait, ulock_wake = c_function("__ulock_wait", 4), c_function("__ulock_wake", 4)

        @callee
        def sleep(addr, old, expected):
            ulock_wait(1, addr, old & 0xFFFFFFFF, 0)  # UL_COMPARE_AND_WAIT

        @callee
        def wake(addr):
            ulock_wake(0x101, addr, 0, 0)  # the same, ULF_WAKE_ALL

    else:
        sched_yield = c_function("sched_yield", 0)

        @callee
        def sleep(addr, old, expected):
            sched_yield()

        @callee
        def wake(addr):
            pass

    return sleep, wake


sleep_until_changed, wake_sleepers = _sleep_and_wake()


@callee_out_of_line
def wait_change(addr, old, sleepers, n_spins, expected):
    """Return once the word at addr is not `old`; `sleepers` counts who sleeps on it.

    Waker and sleeper both touch `sleepers` by read-modify-write after, or before, touching the
    word: one of them sees the other, on any memory model.
    """
    for _ in range(n_spins):
        if atomic_load(addr) != old:
            return
        pause()
    atomic_add(sleepers, 1)
    while atomic_load(addr) == old:
        sleep_until_changed(addr, old, expected)
    atomic_add(sleepers, -1)


@callee
def publish(addr, value, sleepers):
    """Set the word at addr and wake who sleeps on it."""
    atomic_store(addr, value)
    if atomic_add(sleepers, 0) > 0:
        wake_sleepers(addr)


@callee
def worker_line(team, thread):
    """Address of the line of worker `thread` (from 1)."""
    return team + WORKERS + thread * LINE


@callee_out_of_line
def barrier(team, thread, n_threads):
    """Meet the other threads; whether the run was cancelled. The last to arrive decides for all."""
    if n_threads == 1:
        if atomic_load(team + CANCEL):
            store_i64(team + STOPPED, 1)
    else:
        generation = atomic_load(team + GENERATION)
        if atomic_add(team + ARRIVED, 1) == n_threads - 1:
            atomic_store(team + ARRIVED, 0)
            if atomic_load(team + CANCEL):
                store_i64(team + STOPPED, 1)
            publish(team + GENERATION, generation + 1, team + SLEEPERS)
        else:
            expected = worker_line(team, thread) + EXPECTED
            n_spins = load_i64(team + SPINS)
            wait_change(team + GENERATION, generation, team + SLEEPERS, n_spins, expected)
    return load_i64(team + STOPPED)


@callee_out_of_line
def run_ops(team, thread, n_threads):
    """Execute the tape: int64 (kernel address, argument block, whether a barrier follows).

    The last barrier also follows a stop: until all have read STOPPED, no new run may reset it.
    """
    tape, n_ops = load_i64(team + TAPE), load_i64(team + N_OPS)
    for _ in range(n_ops):
        call_kernel(load_i64(tape), load_i64(tape + 8), thread, n_threads)
        if load_i64(tape + 16) and barrier(team, thread, n_threads):
            break
        tape += OP_BYTES
    barrier(team, thread, n_threads)


def worker_main(team, thread, n_threads):
    """Run commands until told to quit."""
    line, seen = worker_line(team, thread), 0
    while True:
        n_spins = load_i64(team + SPINS)
        wait_change(line + COMMAND, seen, line + ASLEEP, n_spins, line + EXPECTED)
        seen = atomic_load(line + COMMAND)
        if load_i64(team + QUIT):
            return
        run_ops(team, thread, load_i64(team + N_RUNNING))


@callee
def command_workers(team, n_threads):
    """Start workers 1..n_threads - 1 on what the block says."""
    for thread in range(1, n_threads):
        line = worker_line(team, thread)
        publish(line + COMMAND, atomic_load(line + COMMAND) + 1, line + ASLEEP)


def run_command(team, thread, n_threads):
    """Run the tape as member 0 of n_threads; STOPPED tells whether it was cancelled."""
    store_i64(team + N_RUNNING, n_threads)
    store_i64(team + STOPPED, 1 if atomic_load(team + CANCEL) else 0)
    if load_i64(team + STOPPED) == 0:
        command_workers(team, n_threads)
        run_ops(team, 0, n_threads)


def quit_workers(team, thread, n_threads):
    """Tell workers 1..n_threads - 1 to leave worker_main."""
    store_i64(team + QUIT, 1)
    command_workers(team, n_threads)


def kernels():
    """Return the kernels of the unit."""
    return {"quit_workers": quit_workers, "run_command": run_command, "worker_main": worker_main}
