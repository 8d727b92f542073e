"""FakeClient: the methods of EngineClient with a script instead of a model, for tests and design.

It keeps the order of events, slots, cancelling and failing of the real one. Time is the tester's:
as fast as possible, at a speed in tokens per second, or standing still until `advance`.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.client.fake_memory import PIECE, FakeMemory, Known, read_known, told, write_known
from engine.client.fake_probs import fake_probs, fake_seed
from engine.client.handle import CompletionHandle
from engine.errors import EngineError, InternalError, RequestError
from engine.params import CompletionRequest
from engine.server.decision import Decision
from engine.server.events import Event, Failed, Finished, PromptProgress, TextDelta, Timings
from engine.server.mailbox import Mailbox
from engine.server.metrics import Metrics, SlotStatus
from engine.server.places import KnownPrefix
from engine.server.rerank import Ranked
from engine.server.slot_files import SlotFile

REPLY = "This is a **scripted** answer.\n\nIt streams like a real one, word by word."
Script = str | Callable[[CompletionRequest], str]


class FakeClient:
    """Answers every request from a script, on one thread, in up to `n_slots` at a time.

    `reply` is the answer or a function of the request; `tokens_per_second` is math.inf, a speed,
    or 0: nothing moves until `advance(n)`. `n_prompt` tokens are read `n_batch` per step, and with
    `opens_thought` end inside a thought. Conversations are known by their text, in slots and in
    the files of `snapshot_dir`.
    """

    def __init__(
        self,
        model_path: Any = "fake.gguf",
        n_slots: int = 4,
        progress: Callable[[str, float], None] | None = None,
        *,
        reply: Script = REPLY,
        tokens_per_second: float = math.inf,
        n_prompt: int = 24,
        n_cached: int = 0,
        n_batch: int = 8,
        n_ctx: int = 4096,
        opens_thought: bool = False,
        load_error: EngineError | None = None,
        model_info: Any = None,
        snapshot_dir: Any = None,
    ) -> None:
        self.model_path = model_path
        self.reply = reply
        self.tokens_per_second = tokens_per_second
        self.n_prompt, self.n_cached, self.n_batch = n_prompt, n_cached, n_batch
        self.n_ctx, self.opens_thought = n_ctx, opens_thought
        self.info = model_info
        self.requests: list[CompletionRequest] = []
        self._load_error = load_error
        self._progress = progress
        self._n_slots = n_slots
        self._waiting: deque[_Answer] = deque()
        self._slots: list[_Answer | None] = [None] * n_slots
        self._memory = FakeMemory(n_slots, Path(snapshot_dir) if snapshot_dir else None)
        self._failures: deque[tuple[EngineError, int]] = deque()
        self._n_steps = 0  # granted by advance()
        self._changed = threading.Condition()
        self._is_closed = False
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fake engine", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------- as EngineClient

    def __enter__(self) -> "FakeClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def state(self) -> str:
        """Return loading, ready, failed or closed."""
        if self._is_closed:
            return "closed"
        if not self._is_ready.is_set():
            return "loading"
        return "failed" if self._load_error else "ready"

    def wait_until_ready(self, timeout: float | None = None) -> bool:
        """Wait for the load; return False after `timeout` seconds; raise the load error."""
        is_ready = self._is_ready.wait(timeout)
        if is_ready and self._load_error:
            raise self._load_error
        return is_ready

    def submit(self, request: CompletionRequest) -> CompletionHandle:
        """Queue a request; never waits. Raises InternalError after close()."""
        mailbox = Mailbox(request.n, request.on_event)
        with self._changed:
            if self._is_closed:
                raise InternalError("The engine is closed; open the model again.")
            self.requests.append(request)
            for index in range(request.n):
                failure = self._failures.popleft() if self._failures else None
                self._waiting.append(_Answer(self, request, mailbox, index, failure))
            self._changed.notify_all()
            id_task = len(self.requests)
        return CompletionHandle(request, mailbox, self._wake, id_task)

    def slots(self) -> list[SlotStatus]:
        """Return the state of every slot; a token is said to have 1 KB of memory."""
        found = [
            answer.status(i)
            if answer
            else SlotStatus(i, "idle", self.n_ctx, -1, self._memory.slots[i].n_tokens)
            for i, answer in enumerate(self._slots)
        ]
        return [replace(status, n_bytes=status.n_tokens << 10) for status in found]

    def infill(self, prefix: str, suffix: str, **options: Any) -> CompletionHandle:
        """Answer from the script."""
        for name in ("extra", "prompt", "suffix_first"):
            options.pop(name, None)
        return self.submit(CompletionRequest(f"{prefix}…{suffix}", **options))

    def decide(self, prompt: Any, options: Iterable[Any], *, id_slot: int = -1) -> Decision:
        """Choose the first option, and each next one half as likely as the one before."""
        texts = tuple(str(option) for option in options)
        if len(texts) < 2:
            raise RequestError("A decision needs at least two options.")
        weights = [0.5**i for i in range(len(texts))]
        probabilities = tuple(weight / sum(weights) for weight in weights)
        return Decision(texts, probabilities, tuple(math.log(p) for p in probabilities))

    def embed(self, texts: Iterable[Any], *, pooling: str = "", normalize: int = 2) -> list[Any]:
        """Return a made-up vector of length 1 for each text."""
        angles = [len(str(text)) / 10 for text in texts]
        return [[math.cos(angle), math.sin(angle)] for angle in angles]

    def rerank(
        self, query: str, documents: Sequence[str], *, top_n: int | None = None
    ) -> list[Ranked]:
        """Rank documents by how many words of the query they have."""
        words = set(query.lower().split())
        shares = [len(words & set(text.lower().split())) / len(words) for text in documents]
        order = sorted(range(len(documents)), key=lambda i: -shares[i])
        return [Ranked(i, shares[i]) for i in order][:top_n]

    def known_prefix(self, prompt: Any) -> KnownPrefix:
        """Return where most of a conversation is known."""
        return self._memory.find(CompletionRequest(prompt).prompt)

    def keep(self, prompt: Any, path: Any) -> "Future[SlotFile]":
        """Write what is known of a conversation to a file."""
        done: Future[SlotFile] = Future()
        n_tokens = self._memory.keep(CompletionRequest(prompt).prompt, Path(path))
        done.set_result(SlotFile(-1, str(path) if n_tokens else "", n_tokens, 1.0))
        return done

    def export_memory(self, prompt: Any, path: Any) -> "Future[SlotFile]":
        """Write what is known of a conversation to a file that is given away."""
        done: Future[SlotFile] = Future()
        n_tokens = self._memory.export(CompletionRequest(prompt).prompt, Path(path))
        done.set_result(SlotFile(-1, str(path) if n_tokens else "", n_tokens, 1.0))
        return done

    def import_memory(self, path: Any, kept_path: Any) -> "Future[SlotFile]":
        """Take over what was exported; the future raises StateFileError for another file."""
        done: Future[SlotFile] = Future()
        try:
            n_tokens = self._memory.adopt(Path(path), Path(kept_path))
            done.set_result(SlotFile(-1, str(kept_path), n_tokens, 1.0))
        except EngineError as error:
            done.set_exception(error)
        return done

    def discard(self, path: Any) -> None:
        """Delete the file of a conversation."""
        self._memory.files.pop(Path(path).absolute(), None)
        Path(path).unlink(missing_ok=True)

    @property
    def skipped_files(self) -> dict[str, str]:
        """Return the files of `snapshot_dir` that cannot be used, each with the reason."""
        return dict(self._memory.skipped)

    def save_slot(self, id_slot: int, path: Any) -> SlotFile:
        """Write what an idle slot remembers; raises RequestError for one that is not."""
        known = self._memory.slots[self._idle(id_slot)]
        write_known(Path(path), known)
        return SlotFile(id_slot, str(path), known.n_tokens, 1.0)

    def restore_slot(self, id_slot: int, path: Any) -> SlotFile:
        """Read what `save_slot` wrote; raises StateFileError, nothing changed, for another file."""
        slot, known = self._idle(id_slot), read_known(Path(path))
        self._memory.slots[slot] = known
        return SlotFile(id_slot, str(path), known.n_tokens, 1.0)

    def erase_slot(self, id_slot: int) -> SlotFile:
        """Forget what an idle slot remembers."""
        slot = self._idle(id_slot)
        n_tokens, self._memory.slots[slot] = self._memory.slots[slot].n_tokens, Known()
        return SlotFile(id_slot, "", n_tokens, 1.0)

    def _idle(self, id_slot: int) -> int:
        if not 0 <= id_slot < self._n_slots or self._slots[id_slot]:
            raise RequestError(f"There is no idle slot {id_slot}.")
        return id_slot

    def metrics(self) -> Metrics:
        """Return how many requests run and wait."""
        return Metrics(
            requests_processing=sum(answer is not None for answer in self._slots),
            requests_deferred=len(self._waiting),
        )

    def tokenize(self, text: str) -> list[int]:
        """Return one made-up id for each piece of the text."""
        return [len(piece) for piece in PIECE.findall(text)]

    def close(self) -> None:
        """End every request as cancelled and join the thread; may be called again."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    # ------------------------------------------------------------- for the tester

    def fail_next(self, error: EngineError, after_tokens: int = 0) -> None:
        """Make the next submitted answer fail after that many tokens."""
        self._failures.append((error, after_tokens))

    def advance(self, n_steps: int = 1) -> None:
        """With tokens_per_second=0: do that many steps of every running answer, then return."""
        self._is_ready.wait()
        with self._changed:
            self._n_steps += n_steps
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._n_steps == 0 or self._is_closed)

    # ------------------------------------------------------------- the thread

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _run(self) -> None:
        for done in (0.0, 0.5, 1.0):
            if self._progress and not self._load_error:
                self._progress("map", done)
        self._is_ready.set()
        while self._next_step():
            may_move = self.tokens_per_second > 0 or self._n_steps > 0
            for i, answer in enumerate(self._slots):
                if not answer or not (may_move or answer.is_given_up):
                    continue
                last = answer.step()
                if last is not None:  # remembered before anybody hears that it is over
                    text = told(answer.request.prompt, answer.text)
                    self._memory.slots[i] = Known(text, answer.status(i).n_tokens)
                    answer.mailbox.deliver(last)
                    self._slots[i] = None
            with self._changed:
                self._n_steps = max(0, self._n_steps - 1)
                self._changed.notify_all()
        with self._changed:
            left = [answer for answer in (*self._slots, *self._waiting) if answer]
            self._slots, self._waiting = [None] * self._n_slots, deque()
        for answer in left:
            answer.end()

    def _next_step(self) -> bool:
        """Wait until a step is due and give free slots to waiting answers; False when closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._has_work())
            if not self._is_closed and math.isfinite(self.tokens_per_second or math.inf):
                due = time.monotonic() + 1 / self.tokens_per_second
                while not self._is_closed and (left := due - time.monotonic()) > 0:
                    self._changed.wait(left)
            given_up = [answer for answer in self._waiting if answer.is_given_up]
            self._waiting = deque(a for a in self._waiting if a not in given_up)
            for i, answer in enumerate(self._slots):
                if answer is None and self._waiting:
                    self._slots[i] = self._waiting.popleft()
                    self._slots[i].id_slot = i  # type: ignore[union-attr]
        for answer in given_up:
            answer.end()
        return not self._is_closed

    def _has_work(self) -> bool:
        answers = [answer for answer in (*self._slots, *self._waiting) if answer]
        if self.tokens_per_second == 0:
            return self._n_steps > 0 or any(answer.is_given_up for answer in answers)
        return bool(answers)

    def failure(self) -> EngineError | None:
        """Return the error that every request ends in, or None when the load went well."""
        return self._load_error


class _Answer:
    """One answer being played from the script."""

    def __init__(
        self,
        client: FakeClient,
        request: CompletionRequest,
        mailbox: Mailbox,
        index: int,
        failure: tuple[EngineError, int] | None,
    ) -> None:
        self.request, self.mailbox, self.index = request, mailbox, index
        self.failure = failure
        self.id_task, self.id_slot = len(client.requests), -1
        self.n_ctx, self.n_prompt, self.n_cached = client.n_ctx, client.n_prompt, client.n_cached
        self.n_read = 0
        self.text = ""
        self.seed = fake_seed(request.params.seed, self.id_task)
        self.tokens: tuple[int, ...] = ()
        self.changes: list[Any] = []
        self.n_heard = 0
        self.started, self.first_token, self.submitted = 0.0, 0.0, time.monotonic()
        self.read_ms = 0.0
        self._events = self._play(client)

    @property
    def is_given_up(self) -> bool:
        return self.mailbox.wants_cancel or self.mailbox.is_abandoned

    def step(self) -> Event | None:
        """Deliver the next event, or return it undelivered if it is the last."""
        if self.is_given_up:
            return self._finished("cancelled")
        event = next(self._events)
        if isinstance(event, (Finished, Failed)):
            return event
        self.mailbox.deliver(event)
        return None

    def end(self, stop_type: str = "cancelled") -> None:
        """Deliver the last event."""
        self.mailbox.deliver(self._finished(stop_type))

    def status(self, id_slot: int) -> SlotStatus:
        return SlotStatus(
            id=id_slot,
            state="generating" if self.tokens else "processing_prompt",
            n_ctx=self.n_ctx,
            id_task=self.id_task,
            n_tokens=self.n_cached + self.n_read + len(self.tokens),
            n_prompt=self.n_prompt,
            n_cached=self.n_cached,
            n_read=self.n_read,
            n_generated=len(self.tokens),
        )

    def _play(self, client: FakeClient) -> Iterator[Event]:
        error = client.failure()
        if error or (self.failure and self.failure[1] == 0):
            error = error or self.failure[0]  # type: ignore[index]
            yield Failed(error.kind, str(error), self.index)
            return
        self.started = time.monotonic()
        yield from self._read(client.n_batch, client.opens_thought)
        seeded = self.request.replace(seed=self.seed)
        reply = client.reply(seeded) if callable(client.reply) else client.reply
        for n, piece in enumerate(PIECE.findall(reply), start=1):
            if self.failure and n > self.failure[1]:
                yield Failed(self.failure[0].kind, str(self.failure[0]), self.index)
                return
            self.first_token = self.first_token or time.monotonic()
            self._hear(n - 1)
            self.text += piece
            self.tokens += (len(piece),)
            yield TextDelta(piece, (len(piece),), fake_probs(self.request, piece), self.index)
            if n == self.request.n_predict:
                yield self._finished("limit")
                return
        yield self._finished("eos")

    def _read(self, n_batch: int, is_reasoning: bool) -> Iterator[Event]:
        while True:
            self.read_ms = (time.monotonic() - self.started) * 1000
            known = self.n_prompt, self.n_cached, self.n_read
            yield PromptProgress(*known, self.read_ms, self.index, is_reasoning)
            n_left = self.n_prompt - self.n_cached - self.n_read
            if n_left == 0:
                return
            self.n_read += min(n_batch, n_left)

    def _hear(self, at: int) -> None:
        """Note what changes at a token, planned or wished."""
        wished, self.n_heard = self.mailbox.changes_after(self.n_heard)
        planned = [change for change in self.request.changes if change[0] == at]
        self.changes += [*planned, *([(at, wished)] if wished else [])]

    def _finished(self, stop_type: str) -> Finished:
        now = time.monotonic()
        timings = Timings(
            n_prompt=self.n_cached + self.n_read,
            n_cached=self.n_cached,
            n_read=self.n_read,
            read_ms=self.read_ms,
            first_token_ms=(self.first_token - self.submitted) * 1000 if self.first_token else 0,
            n_generated=len(self.tokens),
            generate_ms=(now - self.first_token) * 1000 if self.first_token else 0,
        )
        return Finished(
            self.text,
            stop_type,
            timings,
            tokens=self.tokens,
            id_slot=self.id_slot,
            seed=self.seed,
            index=self.index,
            changes=tuple(self.changes),
        )
