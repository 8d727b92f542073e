"""A running request as its caller sees it: events to iterate, and stop and change at any time."""

import weakref
from collections.abc import Callable, Iterator
from typing import Any

from engine.errors import RequestError
from engine.params import CompletionRequest, checked_changes
from engine.server.events import Event, Failed, Finished
from engine.server.mailbox import Mailbox

POLL_S = 0.5  # how long a wait may hide Ctrl-C on systems whose locks cannot be interrupted


class CompletionHandle:
    """One submitted request. Dropping the handle of an iterated request cancels it.

    `id_task` is what SlotStatus calls it while it has a slot.

    Iterating yields its events up to the last one; several answers (`n`) arrive interleaved, told
    apart by `event.index`. With `on_event` there is nothing to iterate.
    """

    def __init__(
        self,
        request: CompletionRequest,
        mailbox: Mailbox,
        wake: Callable[[], None],
        id_task: int = -1,
    ) -> None:
        self.request = request
        self.id_task = id_task
        self._mailbox = mailbox
        self._wake = wake
        if request.on_event is None:
            weakref.finalize(self, _abandon, mailbox).atexit = False

    def __iter__(self) -> Iterator[Event]:
        if self.request.on_event is not None:
            raise RequestError("This request has on_event, so there is nothing to iterate.")
        while True:
            event = self._mailbox.take(POLL_S)
            if event is not None:
                yield event
            elif self._mailbox.is_finished:
                event = self._mailbox.take(0)
                if event is None:
                    return
                yield event

    @property
    def is_finished(self) -> bool:
        """Return whether every answer has ended."""
        return self._mailbox.is_finished

    def cancel(self) -> None:
        """Stop at the next step; the last event is then Finished with stop type "cancelled"."""
        self._mailbox.wants_cancel = True
        self._wake()

    def update(self, **changes: Any) -> None:
        """Change sampling parameters or limits from the next token on.

        `reasoning_budget` is then how many tokens more the model may think.

        Raises RequestError at once for an unknown name or a value out of range.
        """
        checked_changes(changes)
        self._mailbox.leave_changes(changes)

    def end_reasoning(self) -> None:
        """Let a model that is thinking come to its answer now."""
        self.update(reasoning_budget=0)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until every answer has ended; return False after `timeout` seconds."""
        return self._mailbox.wait_finished(timeout)

    def result(self) -> Finished:
        """Take all events and return the first answer; raise its error if it failed."""
        last: Finished | None = None
        for event in self:
            if isinstance(event, Failed):
                raise event.error
            if isinstance(event, Finished) and (last is None or event.index < last.index):
                last = event
        if last is None:
            raise RequestError("The events of this request were already taken.")
        return last


def _abandon(mailbox: Mailbox) -> None:
    # Runs in whatever thread collects the handle: sets a flag, takes no lock.
    mailbox.is_abandoned = True
