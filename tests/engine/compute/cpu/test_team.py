"""The compute team: barriers, thread counts, abort, pins, priorities, and leaving no thread."""

import ctypes
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from engine.compute.cpu import cores, signatures
from engine.compute.cpu.team import MAX_THREADS, Team
from engine.errors import InternalError
from engine.native import objects
from engine.native.buffers import address

KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="affinity and nice are Linux's")


@pytest.fixture(scope="module")
def kernels():
    return objects.load(["team", "pointwise"])


class Shuffle:
    """A tape that permutes rows back and forth between two buffers: wrong without its barriers."""

    def __init__(self, kernels, n_ops):
        rng = np.random.default_rng(0)
        self.n_rows, self.n_ops = 37, n_ops
        self.order = rng.permutation(self.n_rows).astype(np.int32)
        self.first = rng.standard_normal((self.n_rows, 20)).astype(np.float32)
        self.rows = [self.first.copy(), np.zeros_like(self.first)]
        self.batch = np.array([0, 0, 0, self.n_rows, address(self.order)], np.int64)
        stride = self.first.strides[0]
        self.blocks = [
            signatures.pack(
                "pointwise/gather",
                batch=address(self.batch),
                x=address(self.rows[i]),
                ldx=stride,
                n=20,
                out=address(self.rows[1 - i]),
                ldo=stride,
            )
            for i in range(2)
        ]
        ops = [(kernels["pointwise/gather"], address(block), 1) for block in self.blocks]
        self.tape = np.array(ops * (n_ops // 2), np.int64)

    def expected(self):
        order = np.arange(self.n_rows)
        for _ in range(self.n_ops):
            order = order[self.order]
        return self.first[order]


@pytest.mark.parametrize("n_threads", [1, 2, 3, 5])
def test_every_barrier_holds(kernels, n_threads):
    shuffle = Shuffle(kernels, 400)
    with Team(n_threads, kernels=kernels) as team:
        assert team.run(shuffle.tape)
        assert np.array_equal(shuffle.rows[0], shuffle.expected())


def test_runs_after_the_workers_fell_asleep(kernels):
    shuffle = Shuffle(kernels, 10)
    with Team(2, kernels=kernels) as team:
        for _ in range(20):
            shuffle.rows[0][:] = shuffle.first
            time.sleep(0.002)
            assert team.run(shuffle.tape)
            assert np.array_equal(shuffle.rows[0], shuffle.expected())


class Witness:
    """A tape of one op that notes who ran it and how the system treats that thread."""

    def __init__(self):
        self.seen = {}
        self.callback = KERNEL(self.note)
        self.tape = np.array([[ctypes.cast(self.callback, ctypes.c_void_p).value, 0, 1]], np.int64)

    def note(self, args, thread, n_threads):
        nice = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        self.seen[thread] = (n_threads, os.sched_getaffinity(0), nice)

    def run(self, team, *args):
        self.seen.clear()
        assert team.run(self.tape, *args)
        return dict(self.seen)


@linux_only
def test_a_run_may_use_fewer_threads(kernels):
    witness = Witness()
    with Team(3, kernels=kernels) as team:
        for n in (3, 1, 2, 3, 2):
            seen = witness.run(team, n)
            assert sorted(seen) == list(range(n))
            assert {count for count, _, _ in seen.values()} == {n}


@linux_only
def test_members_are_pinned_and_the_caller_only_while_running(kernels):
    before, nice = os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)
    n = min(2, len(before))
    with Team(n, kernels=kernels) as team:
        seen = Witness().run(team)
        assert os.sched_getaffinity(0) == before
        pins = [cpus for _, cpus, _ in seen.values()]
        assert all(len(cpus) == 1 for cpus in pins) and len(set.union(*pins)) == n
        assert seen[0][2] == nice and all(seen[i][2] > nice for i in range(1, n))
        child = [sys.executable, "-c", "import os; print(len(os.sched_getaffinity(0)))"]
        answer = subprocess.run(child, capture_output=True, text=True, check=True).stdout
        assert int(answer) == len(before)


@linux_only
def test_an_adopted_thread_stays_pinned_until_it_leaves(kernels):
    before, noted = os.sched_getaffinity(0), []

    def live(team):
        with team.adopted():
            noted.append(os.sched_getaffinity(0))
            Witness().run(team)
            noted.append(os.sched_getaffinity(0))
        noted.append(os.sched_getaffinity(0))

    with Team(min(2, len(before)), kernels=kernels) as team:
        engine = threading.Thread(target=live, args=(team,))
        engine.start()
        engine.join()
    assert noted[0] == noted[1] and len(noted[0]) == 1
    assert noted[2] == before == os.sched_getaffinity(0)


@linux_only
def test_more_threads_than_cores_are_not_pinned(kernels):
    before = os.sched_getaffinity(0)
    with Team(len(before) + 2, kernels=kernels) as team:
        assert all(cpus == before for _, cpus, _ in Witness().run(team).values())


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_abort_ends_a_run(kernels, n_threads):
    shuffle = Shuffle(kernels, 300_000)
    with Team(n_threads, kernels=kernels) as team:
        timer = threading.Timer(0.02, team.abort)
        timer.start()
        assert not team.run(shuffle.tape)
        timer.join()
        shuffle.rows[0][:] = shuffle.first
        short = Shuffle(kernels, 10)
        assert team.run(short.tape), "the abort must not outlive its run"
        assert np.array_equal(short.rows[0], short.expected())


@pytest.mark.parametrize("n_threads", [2, 3])
def test_runs_right_after_an_abort(kernels, n_threads):
    shuffle, short = Shuffle(kernels, 20_000), Shuffle(kernels, 4)
    with Team(n_threads, kernels=kernels) as team:
        for i in range(60):
            timer = threading.Timer(0.0005 * (i % 4), team.abort)
            timer.start()
            team.run(shuffle.tape)
            short.rows[0][:] = short.first
            while not team.run(short.tape):  # the abort may have come between the two
                short.rows[0][:] = short.first
            timer.join()
            team.run(short.tape[:0])
            assert np.array_equal(short.rows[0], short.expected())


def test_abort_before_a_run_stops_it_before_its_first_op(kernels):
    shuffle = Shuffle(kernels, 2)
    with Team(2, kernels=kernels) as team:
        team.abort()
        assert not team.run(shuffle.tape)
        assert not shuffle.rows[1].any()
        assert team.run(shuffle.tape)


def test_bad_calls_are_refused(kernels):
    with pytest.raises(InternalError):
        Team(0, kernels=kernels)
    with pytest.raises(InternalError):
        Team(MAX_THREADS + 1, kernels=kernels)
    with Team(2, kernels=kernels) as team:
        tape = np.zeros((0, 3), np.int64)
        assert team.run(tape)
        for bad in (
            tape.astype(np.int32),
            np.zeros(3, np.int64),
            np.zeros((2, 6), np.int64)[:, ::2],
        ):
            with pytest.raises(InternalError):
                team.run(bad)
        with pytest.raises(InternalError):
            team.run(tape, 3)
    with pytest.raises(InternalError):
        team.run(tape)


def test_a_second_run_at_once_is_refused(kernels):
    shuffle, refused = Shuffle(kernels, 100_000), []
    with Team(2, kernels=kernels) as team:

        def intrude():
            try:
                team.run(shuffle.tape[:0])
            except InternalError as error:
                refused.append(error)

        timer = threading.Timer(0.02, intrude)
        timer.start()
        assert team.run(shuffle.tape)
        timer.join()
    assert refused


def test_a_forgotten_team_ends_with_its_last_reference(kernels):
    team = Team(3, kernels=kernels)
    workers = list(team._workers)
    del team
    assert not any(worker.is_alive() for worker in workers)


def test_a_program_that_forgets_its_team_ends(kernels):
    program = "from engine.compute.cpu.team import Team; team = Team(2); print('up')"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "up\n" and not done.stderr


def test_cores_are_those_of_the_process():
    found = cores.cores()
    if hasattr(os, "sched_getaffinity"):
        assert set(found) == os.sched_getaffinity(os.getpid())
    assert len(set(found)) == len(found)
    assert list(cores._cpu_list("0,4-6\n")) == [0, 4, 5, 6]
