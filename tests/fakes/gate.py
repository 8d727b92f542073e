"""A gate in front of every decode, so that a test decides when the engine thread moves."""

import threading


class Gate:
    """Stops a scripted context before each decode until `step` lets it through."""

    def __init__(self, context):
        self._turn = threading.Condition()
        self._n_allowed = 0
        self._n_waiting = 0
        self._n_passed = 0
        self._is_open = False
        context.before_decode = self._pass

    def _pass(self, tokens, seq_ids):
        with self._turn:
            self._n_waiting += 1
            self._turn.notify_all()
            assert self._turn.wait_for(lambda: self._is_open or self._n_allowed > 0, 10)
            self._n_allowed -= not self._is_open
            self._n_waiting -= 1
            self._n_passed += 1

    def wait(self):
        """Wait until the engine thread stands before a decode."""
        with self._turn:
            assert self._turn.wait_for(lambda: self._n_waiting > 0, 10), "no decode began"

    def step(self, n=1):
        """Let `n` decodes through; return when the engine thread stands before the next one."""
        for _ in range(n):
            self.wait()
            with self._turn:
                n_passed = self._n_passed
                self._n_allowed += 1
                self._turn.notify_all()
                assert self._turn.wait_for(lambda n=n_passed: self._n_passed > n, 10)
        self.wait()

    def open(self):
        """Let everything through from now on."""
        with self._turn:
            self._is_open = True
            self._turn.notify_all()
