"""Keeps the memory of conversations on the disk, so that they go on with nothing read again."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.chats.conversation import Message
from app.errors import AppError
from app.services.chats import Chats
from app.services.engine_service import Client, EngineService, sentence
from app.services.jobs import Jobs
from app.services.keeping import Keeping, saving_words
from app.services.kept_files import Kept, KeptFiles, file_name
from app.services.reply import Replies
from app.settings import Settings
from app.strings import tr

QUIET_MS = 1500  # after an answer, so that a quick next question is not kept twice
SCAN_MS = 500  # until the engine has looked at the files it found
BLINK_MS = 200  # before it is said that a person waits for the disk
LEAVE_S = 4.0  # that the end of a model may be held up by
GB = 1_000_000_000
_GUESS = 64 * 1024  # bytes of a token while no file of the model says
_PACE = 100_000_000  # bytes per second while no file was written


class Memories(QObject):
    """The files with the memory of conversations: made after answers, gone with the chat.

    Signals:
        changed(): another conversation is on the disk, or one no longer.
        said(str): something a person should know: what is not used or could not be kept.
        saving(str): what is said while a person waits for the disk; "" when that is over.
        idle(): everything that was due is on the disk.
    """

    changed = Signal()
    said = Signal(str)
    saving = Signal(str)
    idle = Signal()

    def __init__(
        self,
        jobs: Jobs,
        engine: EngineService,
        replies: Replies,
        chats: Chats,
        settings: Settings,
        folder: Path,
    ) -> None:
        super().__init__()
        self.files = KeptFiles(folder)
        self._jobs, self._engine, self._replies = jobs, engine, replies
        self._chats, self._settings = chats, settings
        self._due: dict[int, int] = {}  # conversation → the last message to be kept
        self._open: Keeping | None = None
        self._deleting: set[str] = set()  # names of files, on the pool
        self._left: deque[Keeping] = deque()  # kept on the pool while a model ended
        self._pace = float(_PACE)
        self._last_said = ""
        self._until = math.inf  # by the monotonic clock, when the program ends
        self._quiet = self._timer(QUIET_MS, self._next)
        self._scan = self._timer(SCAN_MS, self._note_unfit)
        engine.standing = self._options
        engine.farewell = self._farewell
        engine.changed.connect(self._on_engine_changed)
        replies.settled.connect(self._on_settled)
        chats.trashed.connect(self.discard)
        chats.restored.connect(self._on_restored)
        chats.cut.connect(self._on_cut)
        self._begin()

    def _timer(self, after_ms: int, call: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.setInterval(after_ms)
        timer.timeout.connect(call)
        return timer

    def _begin(self) -> None:
        """Read the index and delete the files of conversations that are gone."""
        self.files.load()
        self._jobs.run(self.files.sweep, lambda _: None)
        there = {conversation.id for conversation in self._chats.database.conversations()}
        for kept in list(self.files):
            if kept.conversation_id not in there or not self.is_on:
                self._delete(kept)
        self._shrink()

    # ------------------------------------------------------------ asking

    @property
    def is_on(self) -> bool:
        """Tell whether conversations are kept at all."""
        return bool(self._settings["keep_memory"])

    def saved(self, conversation_id: int) -> Kept | None:
        """Return the file from which the loaded model goes on; without one, any model's.

        Touches no disk.
        """
        mark = self._engine.mark if self._engine.state == "ready" else ""
        kept = self.files.find(conversation_id, mark)
        return kept if kept is not None and not kept.unfit else None

    def n_unsaved(self) -> int:
        """Return how many conversations are due or on their way."""
        return len(self._due) + (self._open is not None)

    # ------------------------------------------------------------ changing

    def discard(self, conversation_id: int) -> None:
        """Delete what is kept of a conversation."""
        self._due.pop(conversation_id, None)
        if self._open is not None and self._open.conversation_id == conversation_id:
            self._open.mark = ""  # deleted as soon as it is written
        for kept in self.files.of_conversation(conversation_id):
            self._delete(kept)
        self._store()

    def note(self, conversation_id: int, mark: str, n_tokens: int) -> int:
        """Note a file that is in its place now; the oldest go for it. Return its bytes, 0: gone."""
        try:
            n_bytes = (self.files.folder / file_name(conversation_id, mark)).stat().st_size
        except OSError:
            return 0
        kept = Kept(conversation_id, mark, n_tokens, n_bytes, time.time())
        self.files.put(kept)
        self._shrink(kept)
        self._store()
        return n_bytes

    def follow_settings(self) -> None:
        """Delete what the settings no longer allow."""
        for kept in list(self.files) if not self.is_on else ():
            self._delete(kept)
        if not self.is_on:
            self._due.clear()
        self._shrink()
        self._store()

    def hurry(self) -> int:
        """Keep what is due before the program ends; return how many are still on their way.

        `idle` follows when none is. What would take longer than LEAVE_S is left out.
        """
        self._until = min(self._until, time.monotonic() + LEAVE_S)
        self._quiet.stop()
        self._next()
        return self.n_unsaved()

    def finish(self) -> None:
        """Note what was kept while the last model ended; called at the end of the program."""
        self._quiet.stop()
        self._scan.stop()
        self._collect()
        if self.files.is_unsaved:
            try:
                self.files.saving()()
            except AppError:
                return  # tokens are not known at the next start, the files are

    # ------------------------------------------------------------ keeping

    def _on_settled(self, conversation_id: int, message: Message) -> None:
        self._due.pop(conversation_id, None)
        if message.state in ("finished", "cancelled") and message.record.get("timings"):
            self._due[conversation_id] = message.id
            self._quiet.start()

    def _on_restored(self, conversation_id: int) -> None:
        """Keep again what the engine still remembers."""
        leaf_id = self._chats.database.conversation(conversation_id).leaf_id
        if leaf_id is not None:
            self._due[conversation_id] = leaf_id
            self._quiet.start()

    def _on_cut(self, conversation_id: int) -> None:
        """Leave nothing of a deleted message in a file; what is before it is kept again."""
        if self.files.of_conversation(conversation_id) or conversation_id in self._due:
            self.discard(conversation_id)
            self._on_restored(conversation_id)

    def _next(self) -> None:
        """Hand the next conversation to the engine, one at a time, behind all deletions."""
        while self._open is None and self._due and not self._deleting:
            keeping = self._take()
            client = self._engine.client
            if keeping is None or client is None or not keeping.fits(self._until):
                continue
            self._open = keeping
            keeping.start(client).add_done_callback(lambda _: self._jobs.post(self._collect))
            self._collect_open()
        if not self.n_unsaved():
            self.idle.emit()

    def _take(self) -> Keeping | None:
        """Return the next conversation that can be kept, None for one that cannot."""
        conversation_id, message_id = self._due.popitem()
        mark = self._engine.mark
        if not (self.is_on and mark and self._engine.state == "ready"):
            return None
        try:
            message = self._chats.database.message(message_id)
            prompt = self._chats.prompt_of(message)
        except (AppError, LookupError):
            return None  # it is gone, or the disk refuses, which its next message says
        timings = message.record.get("timings") or {}
        n_tokens = timings.get("n_prompt", 0) + timings.get("n_generated", 0)
        kept = self.files.find(conversation_id, mark)
        n_new = max(0, n_tokens - kept.n_tokens) if kept else n_tokens
        path = self.files.folder / file_name(conversation_id, mark)
        seconds = n_new * (self.files.bytes_per_token(mark) or _GUESS) / self._pace
        return Keeping(conversation_id, mark, prompt, path, seconds)

    def _collect(self) -> None:
        """Note everything that has been written meanwhile, and go on."""
        for _ in range(len(self._left)):
            keeping = self._left.popleft()
            if keeping.is_done:
                self._note(keeping)
            else:
                self._left.append(keeping)
        self._collect_open()
        self._next()

    def _collect_open(self) -> None:
        if self._open is not None and self._open.is_done:
            keeping, self._open = self._open, None
            self._note(keeping)

    def _note(self, keeping: Keeping) -> None:
        """Put a written file into the index, and let the oldest go for it."""
        done = keeping.done
        if done is None or done.cancelled():
            return
        error = done.exception()
        if error is not None:
            self._say(sentence(error) if isinstance(error, Exception) else str(error))
            return
        written = done.result()
        if not written.n_tokens:
            return
        if not keeping.mark:
            keeping.path.unlink(missing_ok=True)
            return
        self.note(keeping.conversation_id, keeping.mark, written.n_tokens)
        if written.elapsed_ms > 50 and written.n_written:
            self._pace = written.n_written / written.elapsed_ms * 1000

    def _shrink(self, spared: Kept | None = None) -> None:
        for kept in self.files.over(self._settings["memory_gb"] * GB, spared):
            self._delete(kept)

    def _delete(self, kept: Kept) -> None:
        """Forget a file and delete it beside the window, where the engine knows it through it."""
        self.files.drop(kept)
        client, path = self._engine.client, self.files.folder / kept.name

        def delete() -> None:
            if client is not None:
                client.discard(path)
            else:
                path.unlink(missing_ok=True)

        def end(words: str = "") -> None:
            self._deleting.discard(kept.name)
            if words:
                self._say(words)
            if not self._quiet.isActive():
                self._next()

        self._deleting.add(kept.name)
        self._jobs.run(delete, lambda _: end(), lambda error, _: end(sentence(error)))

    def _store(self) -> None:
        """Write the index beside the window."""
        self._jobs.run(
            self.files.saving(), lambda _: None, lambda error, _: self._say(sentence(error))
        )
        self.changed.emit()

    def _say(self, words: str) -> None:
        if words != self._last_said:
            self._last_said = words
            self.said.emit(words)

    # ------------------------------------------------------------ the engine

    def _options(self) -> dict[str, Any]:
        """Return what every model is opened with: it never deletes before this does."""
        if not self.is_on:
            return {}
        return {
            "snapshot_dir": self.files.folder,
            "cache_disk": 2 * self._settings["memory_gb"] * GB >> 20,
        }

    def _on_engine_changed(self) -> None:
        if self._engine.state == "ready":
            self._scan.start()
        self.changed.emit()

    def _note_unfit(self) -> None:
        """Say once of each file of this model that it cannot be used, and why."""
        client, mark = self._engine.client, self._engine.mark
        if self._engine.state != "ready" or client is None:
            return
        skipped, is_changed = client.skipped_files, False
        for kept in list(self.files):
            reason = skipped.get(kept.name, "")
            if kept.mark != mark or kept.unfit == reason:
                continue
            self.files.put(replace(kept, unfit=reason))
            is_changed = True
            if reason:
                title = self._chats.database.conversation(kept.conversation_id).title
                words = tr(
                    "The saved memory of “{title}” is not used: {why}", title=title, why=reason
                )
                self._say(words)
        if is_changed:
            self._store()

    def _farewell(self, client: Client) -> Callable[[], None]:
        """Return what keeps the rest before a model ends, on any thread, in LEAVE_S seconds.

        What would take longer than that is read again some time.
        """
        self._quiet.stop()
        opened, rest, is_over = self._open, [], threading.Event()
        while self._due:
            keeping = self._take()
            if keeping is not None and keeping.path.name not in self._deleting:
                rest.append(keeping)
        if rest or opened is not None:
            n = len(rest) + (opened is not None)
            QTimer.singleShot(BLINK_MS, self, lambda: self._say_saving(n, is_over))

        def keep() -> None:
            until = min(self._until, time.monotonic() + LEAVE_S)
            if opened is not None:
                opened.wait(until)
            for keeping in rest:
                if keeping.fits(until):
                    keeping.start(client)
                    keeping.wait(until)
                    self._left.append(keeping)
            is_over.set()
            self._jobs.post(self._collect)
            self._jobs.post(lambda: self.saving.emit(""))

        return keep

    def _say_saving(self, n: int, is_over: threading.Event) -> None:
        if not is_over.is_set():
            self.saving.emit(saving_words(n))
