"""A bound on work: tells an end within its time from a hang, whatever else the machine does."""

import time
from contextlib import contextmanager

# Ten times what a machine at rest needs: a measured, busy or slow one stays far below, a hang not.
SLACK = 10


@contextmanager
def bounded(seconds):
    """Fail if the block takes this thread more processor time than ten times `seconds`."""
    start = time.thread_time()
    yield
    spent = time.thread_time() - start
    assert spent < SLACK * seconds, f"{spent:.1f} s of processor time, {seconds} s are enough"
