"""Task: one unit of work for the engine thread, and where its answer goes."""

import enum
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from engine.params import CompletionRequest
from engine.server.mailbox import Mailbox


class TaskKind(enum.Enum):
    """What a task asks for."""

    COMPLETION = "completion"
    SLOT_SAVE = "slot save"
    SLOT_RESTORE = "slot restore"
    SLOT_ERASE = "slot erase"


@dataclass(eq=False)
class Task:
    """One piece of work. A completion answers through its mailbox, the rest through `reply`."""

    kind: TaskKind
    id: int
    id_slot: int = -1
    request: CompletionRequest = field(default_factory=CompletionRequest)
    mailbox: Mailbox = field(default_factory=Mailbox)
    path: str = ""
    reply: "Future[Any]" = field(default_factory=Future)
    tokens: list[int] | None = None  # the prompt, once it is made into ids
    submitted_at: float = field(default_factory=time.monotonic)

    @property
    def is_given_up(self) -> bool:
        """Return whether the caller cancelled or vanished."""
        return self.mailbox.wants_cancel or self.mailbox.is_abandoned
