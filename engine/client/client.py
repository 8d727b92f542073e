"""EngineClient: one model on its own thread, asked from any thread, answering in events."""

import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from engine.client.handle import CompletionHandle
from engine.client.loading import N_FORKS, check_model, load_model
from engine.errors import InternalError
from engine.params import CompletionRequest, ContextParams
from engine.server.decision import Decision
from engine.server.embedding import Texts
from engine.server.infill import Infill
from engine.server.loaded import Loaded
from engine.server.loop import EngineLoop, Keeping, Progress
from engine.server.mailbox import Mailbox
from engine.server.metrics import Metrics, SlotStatus
from engine.server.places import KnownPrefix
from engine.server.rerank import Pairs, Ranked, ranked
from engine.server.slot_files import SlotFile
from engine.server.task import CLOSED, Task, TaskKind, decision_task

MIB = 1 << 20
CACHE_RAM = 8192  # MiB, where a quarter of the machine's memory is not less
CACHE_DISK = 32_768


class EngineClient:
    """Opens a model and runs requests in up to `n_slots` slots at once.

    The constructor reads the file's header and raises ModelFileError or UnsupportedModelError at
    once; everything heavy happens on the engine thread. Requests submitted while it loads wait;
    if the load fails they end in Failed. Other options are those of ContextParams; `n_ctx` is
    what all slots share and what one conversation may take of it; with `context_shift` an answer
    that fills it goes on without its middle. Use as a context manager.

    What slots remembered before is kept in `cache_ram` MiB (0: only where pages are free), and
    conversations saved to `snapshot_dir` in `cache_disk` MiB; they are found again at the next
    start. After `sleep_idle_seconds` without a request (below 0: never) the model leaves memory,
    and the next request brings it back; conversations go on where they were.
    """

    def __init__(
        self,
        model_path: str | PathLike[str],
        n_slots: int = 4,
        progress: Progress | None = None,
        *,
        n_gpu_layers: int = 0,
        context_shift: bool = False,
        cache_ram: int | None = None,
        snapshot_dir: str | PathLike[str] | None = None,
        cache_disk: int = CACHE_DISK,
        sleep_idle_seconds: float = -1.0,
        **context_options: Any,
    ) -> None:
        """Raises MachineError too, for a `snapshot_dir` that cannot be made."""
        cache_ram = _quarter_of_memory() if cache_ram is None else cache_ram
        options = {**context_options, "n_seq_max": n_slots + N_FORKS, "cache_ram": cache_ram}
        params = ContextParams(**options)
        self.model_path: str | None = fspath(model_path)
        self.info: Any = check_model(self.model_path)
        path = self.model_path

        def load(report: Progress) -> Loaded:
            return load_model(path, params, report, n_gpu_layers, context_shift)

        folder = Path(snapshot_dir) if snapshot_dir is not None else None
        keeping = Keeping(params.cache_ram * MIB, folder, cache_disk * MIB, sleep_idle_seconds)
        self._start(load, n_slots, progress, keeping)

    @classmethod
    def over(
        cls,
        load: Callable[[Progress], Loaded],
        n_slots: int = 4,
        progress: Progress | None = None,
        keeping: Keeping | None = None,
    ) -> "EngineClient":
        """Return a client over anything that loads into the contracts of `engine.server.loaded`."""
        client = cls.__new__(cls)
        client.model_path, client.info = None, None
        client._start(load, n_slots, progress, keeping)
        return client

    def _start(
        self,
        load: Callable[[Progress], Loaded],
        n_slots: int,
        progress: Progress | None,
        keeping: Keeping | None,
    ) -> None:
        self._ids = itertools.count()
        self._loop = EngineLoop(load, n_slots, progress, keeping)

    def __enter__(self) -> "EngineClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------- state

    @property
    def state(self) -> str:
        """Return loading, ready, asleep, failed or closed."""
        if self._loop.error is not None:
            return "failed"
        if self._loop.queue.is_closed:
            return "closed"
        if self._loop.is_asleep:
            return "asleep"
        return "ready" if self._loop.is_ready.is_set() else "loading"

    def wait_until_ready(self, timeout: float | None = None) -> bool:
        """Wait for the load; return False after `timeout` seconds; raise the load error."""
        if not self._loop.is_ready.wait(timeout):
            return False
        if self._loop.error is not None:
            raise self._loop.error
        if self._loop.loaded is None:
            raise InternalError(CLOSED)
        return True

    def slots(self) -> list[SlotStatus]:
        """Return the state of every slot, at once, also during a decode; empty while loading."""
        return self._loop.slots()

    def metrics(self) -> Metrics:
        """Return counters and what runs and waits, at once, also during a decode."""
        return self._loop.metrics()

    # ------------------------------------------------------------- requests

    def submit(self, request: CompletionRequest) -> CompletionHandle:
        """Queue a request and return its handle; never waits.

        Everything that can go wrong with it arrives as a Failed event. `on_event` is called on the
        engine thread; only once the engine has ended, which it tells here, on the caller's.
        """
        return self._submit(TaskKind.COMPLETION, request)

    def infill(
        self,
        prefix: str,
        suffix: str,
        *,
        extra: Sequence[tuple[str, str]] = (),
        prompt: str = "",
        suffix_first: bool = False,
        **options: Any,
    ) -> CompletionHandle:
        """Let the model write what belongs between two texts; never waits.

        `extra` are other files as (name, text), `prompt` begins what is written, `options` are
        those of CompletionRequest. A model without tokens for it answers with Failed.
        """
        gap = Infill(prefix, suffix, extra, prompt, suffix_first)
        return self._submit(TaskKind.INFILL, CompletionRequest(**options), gap)

    def _submit(
        self, kind: TaskKind, request: CompletionRequest, subject: Any = None
    ) -> CompletionHandle:
        mailbox = Mailbox(request.n, request.on_event)
        task = Task(kind, next(self._ids), request.id_slot, request, mailbox, subject=subject)
        self._loop.post(task)
        return CompletionHandle(request, mailbox, lambda: self._loop.hear(mailbox), task.id)

    def decide(self, prompt: Any, options: Iterable[Any], *, id_slot: int = -1) -> Decision:
        """Return how likely each option is to follow a prompt; waits for it.

        Options are texts or numbers, such as ("Yes", "No") or range(1, 11): `best` is the
        likeliest, `score` the mean of numbers. The prompt is what CompletionRequest takes. Raises
        RequestError for fewer than two options, else what its prompt and machine are guilty of.
        """
        task = decision_task(next(self._ids), prompt, tuple(options), id_slot)
        self._loop.post(task)
        return task.reply.result()

    def embed(
        self, texts: Iterable[str | Sequence[int]], *, pooling: str = "", normalize: int = 2
    ) -> list[Any]:
        """Return a vector float32 [n_embd] for each text; waits for them.

        `pooling` is mean, cls, last, none (a row for each token) or the model's own; `normalize`
        the norm that becomes 1: 1, 2, …, 0 the largest number to 16 bits, -1 none. Raises
        RequestError for an empty text, ContextFullError for one that is too long.
        """
        return self._ask(TaskKind.EMBEDDING, Texts(list(texts), pooling, normalize))

    def rerank(
        self, query: str, documents: Sequence[str], *, top_n: int | None = None
    ) -> list[Ranked]:
        """Return the documents that answer a query, the best first; waits for it.

        A model made for ranking scores them with its head. Any other is asked of each document
        whether it answers the query; the score is how likely its yes is, 0 to 1. Raises as
        `decide`.
        """
        scores = self._ask(TaskKind.RERANK, Pairs(query, tuple(documents)))
        return ranked(scores)[:top_n]

    def tokenize(self, text: str) -> list[int]:
        """Return the token ids of a plain text, without a beginning token; waits for the load."""
        self.wait_until_ready()
        loaded = self._loop.loaded
        if loaded is None:
            raise InternalError(CLOSED)
        return loaded.tokenize(text)

    # ------------------------------------------------------------- what is remembered

    def known_prefix(self, prompt: Any) -> KnownPrefix:
        """Return where most of a conversation is known, at once, also during a decode.

        The prompt is what CompletionRequest takes; it is made into tokens on the caller's thread.
        Nothing is known while the model loads. Raises RequestError or TemplateError for a prompt
        that cannot be.
        """
        loaded = self._loop.loaded
        if loaded is None:
            return KnownPrefix("", 0, 0)
        return self._loop.known.find(loaded.encode(CompletionRequest(prompt).prompt))

    def keep(self, prompt: Any, path: str | PathLike[str]) -> "Future[SlotFile]":
        """Write what is known of a conversation to a file, without waiting for it.

        A prompt that goes on from there starts from the file when nothing better is in memory; if
        the file lies in `snapshot_dir`, also after the next start. Nothing known is no file, and
        0 tokens. The future raises MachineError if the file cannot be stored.
        """
        return self._post_file(TaskKind.KEEP, path, CompletionRequest(prompt))

    def export_memory(self, prompt: Any, path: str | PathLike[str]) -> "Future[SlotFile]":
        """Write what is known of a conversation to a file that is given away; never waits.

        It holds this conversation only, in one piece, and no prompt starts from it. Nothing known
        is no file, and 0 tokens. The future raises MachineError if the file cannot be stored.
        """
        return self._post_file(TaskKind.EXPORT, path, CompletionRequest(prompt))

    def import_memory(
        self, path: str | PathLike[str], kept_path: str | PathLike[str]
    ) -> "Future[SlotFile]":
        """Take over the memory of a conversation that was exported; never waits.

        The file is read whole and copied to `kept_path`, from which prompts start now, and after
        the next start too if it lies in `snapshot_dir`. The future raises StateFileError, with
        what differs, for a file that is damaged or of another model or kind of memory.
        """
        return self._post_file(TaskKind.IMPORT, kept_path, subject=fspath(path))

    def _post_file(
        self,
        kind: TaskKind,
        path: str | PathLike[str],
        request: CompletionRequest | None = None,
        subject: Any = None,
    ) -> "Future[SlotFile]":
        reply: Future[SlotFile] = Future()
        request = request or CompletionRequest()
        task = Task(
            kind, next(self._ids), -1, request, path=fspath(path), reply=reply, subject=subject
        )
        self._loop.post(task)
        return reply

    def discard(self, path: str | PathLike[str]) -> None:
        """Delete the file of a conversation and start no prompt from it any more."""
        self._loop.known.forget_file(Path(path), deletes=True)

    @property
    def skipped_files(self) -> dict[str, str]:
        """Return the files of `snapshot_dir` that cannot be used, each with the reason."""
        return dict(self._loop.saved.skipped)

    def save_slot(self, id_slot: int, path: str | PathLike[str]) -> SlotFile:
        """Write what a slot remembers to a file; waits while the slot is busy.

        Raises RequestError, MachineError (disk) or InternalError.
        """
        return self._ask(TaskKind.SLOT_SAVE, None, id_slot, fspath(path))

    def restore_slot(self, id_slot: int, path: str | PathLike[str]) -> SlotFile:
        """Read a slot's memory from a file; waits while the slot is busy.

        Raises StateFileError, the slot's memory unchanged, when the file does not fit.
        """
        return self._ask(TaskKind.SLOT_RESTORE, None, id_slot, fspath(path))

    def erase_slot(self, id_slot: int) -> SlotFile:
        """Forget what a slot remembers; waits while the slot is busy."""
        return self._ask(TaskKind.SLOT_ERASE, None, id_slot, "")

    def _ask(self, kind: TaskKind, subject: Any, id_slot: int = -1, path: str = "") -> Any:
        reply: Future[Any] = Future()
        task = Task(kind, next(self._ids), id_slot, path=path, reply=reply, subject=subject)
        self._loop.post(task)
        return reply.result()

    def close(self) -> None:
        """End every request as cancelled, free the model and join the threads."""
        self._loop.close()


def _quarter_of_memory() -> int:
    """Return the MiB that prompts may be kept in by default."""
    if not hasattr(os, "sysconf"):
        return CACHE_RAM // 8  # a system that counts memory as used when it is asked for
    n_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(CACHE_RAM, n_bytes // 4 // MIB)
