"""Measures the tests of this room share."""

import time

import pytest


@pytest.fixture
def cpu_seconds():
    """Return a function that calls another and returns the CPU seconds that took this thread."""

    def measure(run):
        start = time.thread_time()
        run()
        return time.thread_time() - start

    return measure
