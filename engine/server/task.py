"""Task: one unit of work for the engine thread, and where its answer goes."""

import enum
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from engine.errors import EngineError, InternalError
from engine.params import CompletionRequest
from engine.server.events import Event, Failed, Finished
from engine.server.mailbox import Mailbox
from engine.server.sampler import Sampler

CLOSED = "The engine is closed; open the model again."


class TaskKind(enum.Enum):
    """What a task asks for."""

    COMPLETION = "completion"
    INFILL = "infill"
    DECISION = "decision"
    EMBEDDING = "embedding"
    RERANK = "rerank"
    KEEP = "keep"
    EXPORT = "export"
    IMPORT = "import"
    SLOT_SAVE = "slot save"
    SLOT_RESTORE = "slot restore"
    SLOT_ERASE = "slot erase"

    @property
    def takes_slot(self) -> bool:
        """Return whether it reads a prompt in a slot of its own."""
        return self in (TaskKind.COMPLETION, TaskKind.INFILL, TaskKind.DECISION)


@dataclass(eq=False)
class Task:
    """One piece of work. What takes a slot tells events to its mailbox, the rest `reply`.

    `subject` is what the kind needs besides a prompt; the intake makes `tokens` of the prompt and
    a sampler for each answer.
    """

    kind: TaskKind
    id: int
    id_slot: int = -1
    request: CompletionRequest = field(default_factory=CompletionRequest)
    mailbox: Mailbox = field(default_factory=Mailbox)
    path: str = ""
    reply: "Future[Any]" = field(default_factory=Future)
    subject: Any = None
    tokens: list[int] | None = None
    n_before_question: int = 0  # tokens before the last question, where windows will forget them
    requests: Sequence[CompletionRequest] = ()  # one for each answer, with its own seed
    samplers: Sequence[Sampler] = ()
    error: EngineError | None = None  # why it could not be prepared
    submitted_at: float = field(default_factory=time.monotonic)

    @property
    def is_given_up(self) -> bool:
        """Return whether the caller cancelled or vanished."""
        return self.mailbox.wants_cancel or self.mailbox.is_abandoned

    def refuse(self, error: EngineError) -> None:
        """Answer a task that never ran with an error."""
        if not self.kind.takes_slot:
            self.reply.set_exception(error)
            return
        for index in range(self.request.n):
            self.mailbox.deliver(Failed(error.kind, str(error), index))

    def cancel(self) -> None:
        """Answer a task that never ran as cancelled."""
        if not self.kind.takes_slot:
            self.reply.set_exception(InternalError(CLOSED))
            return
        for index in range(self.request.n):
            self.mailbox.deliver(Finished("", "cancelled", index=index))


def decision_task(id_task: int, prompt: Any, options: Sequence[Any], id_slot: int = -1) -> Task:
    """Return a task that weighs options behind a prompt; its `reply` becomes a Decision."""
    reply: Future[Any] = Future()

    def on_event(event: Event) -> None:
        if isinstance(event, Failed):
            reply.set_exception(event.error)
        elif isinstance(event, Finished) and event.stop_type == "cancelled":
            reply.set_exception(InternalError(CLOSED))

    request = CompletionRequest(prompt, id_slot=id_slot, return_progress=False)
    kind, mailbox = TaskKind.DECISION, Mailbox(1, on_event)
    return Task(kind, id_task, id_slot, request, mailbox, reply=reply, subject=tuple(options))
