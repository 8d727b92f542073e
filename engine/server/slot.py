"""Slot: one place to run a request; it owns a sequence and keeps its memory between requests.

IDLE ─launch→ STARTED ─→ PROCESSING_PROMPT ─→ DONE_PROMPT ─→ GENERATING ─release→ IDLE
   └─launch as child→ WAIT_OTHER ─parent's prompt is read→ DONE_PROMPT
"""

import enum
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from engine.params import Change, CompletionRequest
from engine.server.emit import TextEmitter
from engine.server.events import Event, Finished, PromptProgress, TextDelta, Timings, TokenProb
from engine.server.metrics import SlotStatus
from engine.server.sampler import Sampler
from engine.server.task import Task


class SlotState(enum.Enum):
    """Where a slot is in the life of its request."""

    IDLE = "idle"
    WAIT_OTHER = "wait_other"
    STARTED = "started"
    PROCESSING_PROMPT = "processing_prompt"
    DONE_PROMPT = "done_prompt"
    GENERATING = "generating"


class Slot:
    """The state of one slot. `tokens` is what its sequence holds in memory, position = index."""

    def __init__(self, id_slot: int, n_ctx: int) -> None:
        self.id = id_slot
        self.n_ctx = n_ctx
        self.tokens: list[int] = []
        self.last_used_at = 0.0
        self.prompt_row: tuple[int, Any] | None = None  # (prompt length, its last logits)
        self._forget_request()

    def _forget_request(self) -> None:
        self.state = SlotState.IDLE
        self.task: Task | None = None
        self.request = CompletionRequest()
        self.prompt: Sequence[int] = ()
        self.index = 0  # which of the request's answers
        self.parent: Slot | None = None
        self.children: list[Slot] = []
        self.sampler: Sampler | None = None
        self.seed = 0
        self.emitter = TextEmitter()
        self.sampled = -1  # the token to be decoded next
        self.generated: list[int] = []
        self.probs: list[TokenProb] = []
        self.n_cached = 0
        self.n_read = 0
        self.n_changes_heard = 0
        self.changes: list[Change] = []  # those that took hold
        self.n_planned = 0  # of the request's own changes that are done
        self.meeting: tuple[Slot, int] | None = None  # who reads our prompt, up to how many tokens
        self.arriving: tuple[Any, Future[Any]] | None = None  # a place on disk, what is read of it
        self.is_truncated = False  # the context was full and its middle was dropped
        self.started_at = self.read_at = self.first_token_at = self.last_token_at = 0.0

    def launch(self, task: Task, stop_words: Sequence[str], index: int = 0) -> None:
        """Begin one of a task's answers in this idle slot."""
        self._forget_request()
        self.task, self.request, self.sampler = task, task.requests[index], task.samplers[index]
        self.index, self.seed = index, self.request.params.seed
        self.prompt = task.tokens or ()
        self.emitter = TextEmitter(stop_words, task.request.n_indent)
        self.state = SlotState.STARTED
        self.started_at = time.monotonic()

    def release(self) -> None:
        """Become idle; what is in memory stays known, except a child's."""
        self.last_used_at = time.monotonic()
        self._forget_request()

    @property
    def is_idle(self) -> bool:
        """Return whether a task may be launched here."""
        return self.state is SlotState.IDLE

    @property
    def n_prompt_left(self) -> int:
        """Return how many prompt tokens are not in memory yet."""
        return len(self.prompt) - self.n_cached - self.n_read

    def truncate(self, n_tokens: int) -> None:
        """Record that memory holds only the first `n_tokens` tokens now."""
        del self.tokens[n_tokens:]
        if self.prompt_row is not None and n_tokens < self.prompt_row[0]:
            self.prompt_row = None

    def keep_prompt_row(self, row: Any) -> None:
        """Remember the logits after the prompt, to answer the same prompt without reading it."""
        self.prompt_row = (len(self.prompt), row)

    def known_row(self) -> Any | None:
        """Return the logits after exactly this prompt if they are remembered."""
        if self.prompt_row is not None and self.prompt_row[0] == len(self.prompt):
            return self.prompt_row[1]
        return None

    def wishes(self) -> list[Mapping[str, Any]]:
        """Return what is to change before the next token, planned or wished since the last."""
        plan, n_generated, found = self.request.changes, len(self.generated), []
        while self.n_planned < len(plan) and plan[self.n_planned][0] <= n_generated:
            found.append(plan[self.n_planned][1])
            self.n_planned += 1
        if self.task is not None:
            heard = self.task.mailbox.changes_after(self.n_changes_heard)
            changes, self.n_changes_heard = heard
            found += [changes] if changes else []
        return found

    def send(self, event: Event) -> None:
        """Deliver an event to whoever asked."""
        if self.task is not None:
            self.task.mailbox.deliver(event)

    def send_progress(self) -> None:
        """Tell how much of the prompt is known, if the request wants to hear it."""
        if self.request.return_progress and self.parent is None:
            elapsed_ms = (time.monotonic() - self.started_at) * 1000
            n_prompt = len(self.prompt)
            known = n_prompt, self.n_cached, self.n_read
            is_reasoning = self.sampler is not None and self.sampler.is_reasoning
            self.send(PromptProgress(*known, elapsed_ms, self.index, is_reasoning))

    def send_text(self, text: str, tokens: tuple[int, ...] = (), probs: Any = ()) -> None:
        """Deliver certain text with the tokens sampled for it."""
        self.send(TextDelta(text, tokens, probs, self.index))

    def finished(self, stop_type: str) -> Finished:
        """Return the last event of an answer that ended well."""
        return Finished(
            text=self.emitter.text,
            stop_type=stop_type,
            timings=self.timings(),
            truncated=self.is_truncated,
            tokens=tuple(self.generated),
            probs=tuple(self.probs),
            stop_word=self.emitter.stop_word if stop_type == "word" else "",
            id_slot=self.id,
            seed=self.seed,
            index=self.index,
            changes=tuple(self.changes),
        )

    def timings(self) -> Timings:
        """Return the counts and times of the running request."""
        read_at = self.read_at or time.monotonic()
        submitted_at = self.task.submitted_at if self.task else self.started_at
        has_token = self.first_token_at > 0
        return Timings(
            n_prompt=self.n_cached + self.n_read,
            n_cached=self.n_cached,
            n_read=self.n_read,
            read_ms=(read_at - self.started_at) * 1000,
            first_token_ms=(self.first_token_at - submitted_at) * 1000 if has_token else 0.0,
            n_generated=len(self.generated),
            generate_ms=(self.last_token_at - self.first_token_at) * 1000 if has_token else 0.0,
        )

    def status(self, n_bytes: int = 0) -> SlotStatus:
        """Return what the slot list shows; any thread may ask, while the slot moves on.

        `n_bytes` are those of its K and V.
        """
        task = self.task
        return SlotStatus(
            id=self.id,
            state=self.state.value,
            n_ctx=self.n_ctx,
            id_task=task.id if task else -1,
            n_tokens=len(self.tokens),
            n_prompt=len(self.prompt),
            n_cached=self.n_cached,
            n_read=self.n_read,
            n_generated=len(self.generated),
            n_bytes=n_bytes,
        )
