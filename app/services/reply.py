"""Running answers: events of the engine drained by one timer, committed, and told as signals."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.chats.conversation import Message
from app.chats.database import ChatDatabase
from app.errors import AppError
from app.services.engine_service import EngineService, sentence
from app.services.reasoning import OPEN
from app.services.running import Reply
from app.services.sampling import used
from app.services.token_log import TokenLog
from app.strings import tr

FRAME_MS = 33
COMMIT_S = 1.0
LIVE_LIMITS = ("n_predict", "t_max_predict_ms", "stop", "reasoning_budget")
Then = Callable[[Message], None] | None


class Replies(QObject):
    """All answers that run or wait, at most one per conversation.

    Signals (the first argument is the conversation id):
        added(int, Message): a message was stored.
        text_came(int, int, str): more text of a message.
        reading(int, int, object): PromptProgress of a message.
        measured(int, int, int, float): message, tokens so far, tokens per second.
        settled(int, Message): an answer ended; its last state is stored.
        busy_changed(): another number of answers runs, waits, reads or writes.
        trouble(str): the disk refused to store something; a sentence to show.
    """

    added = Signal(int, object)
    text_came = Signal(int, int, str)
    reading = Signal(int, int, object)
    measured = Signal(int, int, int, float)
    settled = Signal(int, object)
    busy_changed = Signal()
    trouble = Signal(str)

    def __init__(self, database: ChatDatabase, engine: EngineService) -> None:
        super().__init__()
        self.running: dict[int, Reply] = {}
        self.tokens = TokenLog()
        self._database = database
        self.engine = engine
        self._timer = QTimer(self)
        self._timer.setInterval(FRAME_MS)
        self._timer.timeout.connect(self.drain)
        engine.opened.connect(self._submit_waiting)
        engine.changed.connect(self._on_engine_changed)

    # ------------------------------------------------------------ starting

    def answer(
        self,
        conversation_id: int,
        parent_id: int | None,
        request: Mapping[str, Any],
        told: Mapping[str, Any] | None = None,
        then: Then = None,
    ) -> Message:
        """Store a new answer below `parent_id` and let the engine write it.

        `request` holds keyword arguments of CompletionRequest, `told` more for its record; `then`
        is called with the settled message unless it was stopped or failed. Raises StorageError.
        """
        message = self._database.add_message(
            conversation_id, parent_id, "assistant", "", state="running"
        )
        self.added.emit(conversation_id, message)
        reply = Reply(message, dict(request), dict(told or {}), then)
        reply.n_earlier = self._n_earlier(parent_id)
        self._start(reply)
        return message

    def _n_earlier(self, question_id: int | None) -> int:
        """Return how many tokens the conversation had before a question, 0 if nobody knows."""
        question = self._database.message(question_id) if question_id is not None else None
        if question is None or question.parent_id is None:
            return 0
        return int(self._database.message(question.parent_id).record.get("n_used", 0))

    def resume(
        self,
        message: Message,
        request: Mapping[str, Any],
        told: Mapping[str, Any] | None = None,
        then: Then = None,
    ) -> None:
        """Let the engine go on with an answer that ended early; as `answer`."""
        self._database.update_message(message.id, state="running")
        running = self._database.message(message.id)
        self.settled.emit(message.conversation_id, running)
        self._start(Reply(running, dict(request), dict(told or {}), then))

    def _start(self, reply: Reply) -> None:
        options = self.tokens.options()
        if options:
            self.tokens.begin(reply.message.id, reply.message.text)
        reply.request |= options
        self.running[reply.message.conversation_id] = reply
        self._submit(reply)
        self._timer.start()
        self.busy_changed.emit()

    def _submit(self, reply: Reply) -> None:
        """Hand the request to the engine; without a client yet it waits for one."""
        import engine

        if self.engine.client is None:
            if not self.engine.is_available():
                reply.events.append(engine.Failed("no model", self.engine.error))
            return
        try:
            request = engine.CompletionRequest(**reply.request, on_event=reply.events.append)
            reply.handle = self.engine.client.submit(request)
        except engine.EngineError as error:
            reply.events.append(engine.Failed(error.kind, str(error)))

    def _submit_waiting(self) -> None:
        for reply in self.running.values():
            if reply.handle is None and not reply.events:
                self._submit(reply)

    def _on_engine_changed(self) -> None:
        """A failed load answers everything; without a model nothing is left to wait for.

        Another model answers what the last one had not begun.
        """
        import engine

        state = self.engine.state
        for reply in self.running.values() if state == "loading" else ():
            if reply.text():
                reply.cut_by = "" if reply.is_stopping else "model"
            elif not reply.is_stopping:
                reply.withdraw()
        for reply in self.running.values() if state in ("failed", "empty") else ():
            if state == "failed" or reply.handle is None:
                reply.events.clear()
                reply.events.append(engine.Failed("no model", self.engine.error))

    # ------------------------------------------------------------ changing

    def stop(self, conversation_id: int) -> None:
        """Stop an answer and keep what came; the last event settles it."""
        reply = self.running.get(conversation_id)
        if reply is None or reply.is_stopping:
            return
        reply.is_stopping = True
        if reply.handle is None:
            self._settle(reply, "cancelled", {"stop_type": "cancelled"})
        else:
            reply.handle.cancel()

    def change(self, conversation_id: int, values: Mapping[str, Any]) -> None:
        """Change sampling values and limits of a running answer from its next token on."""
        reply = self.running.get(conversation_id)
        if reply is None:
            return
        if reply.handle is not None:
            reply.handle.update(**values)
            reply.changes.append({"at": reply.n_arrived(), "values": dict(values)})
            return
        limits = {name: value for name, value in values.items() if name in LIVE_LIMITS}
        sampling = {name: value for name, value in values.items() if name not in LIVE_LIMITS}
        reply.request |= limits | {"params": {**reply.request.get("params", {}), **sampling}}

    def end_reasoning(self, conversation_id: int) -> None:
        """Let a model that is thinking come to its answer now."""
        self.change(conversation_id, {"reasoning_budget": 0})

    def is_running(self, conversation_id: int) -> bool:
        """Tell whether an answer of this conversation runs or waits."""
        return conversation_id in self.running

    def place_in_line(self, conversation_id: int) -> int:
        """Return how many answers wait up to and with this one; 0 when it does not wait."""
        waiting = [c for c, reply in self.running.items() if reply.phase() == "waiting"]
        is_full = len(waiting) < len(self.running)
        return waiting.index(conversation_id) + 1 if is_full and conversation_id in waiting else 0

    def rate(self) -> float:
        """Return tokens per second of all running answers together."""
        return sum(reply.speed.rate() for reply in self.running.values())

    def stop_all(self) -> None:
        """Stop everything and store what came; called when the window closes."""
        self._timer.stop()
        for reply in list(self.running.values()):
            if reply.handle is not None:
                reply.handle.cancel()
                reply.handle.wait(2.0)
            self._drain_one(reply)
            if reply.message.conversation_id in self.running:
                self._settle(reply, "cancelled", {"stop_type": "cancelled"})

    # ------------------------------------------------------------ draining

    def drain(self) -> None:
        """Take over everything that came since the last frame; the one timer of all panes."""
        for reply in list(self.running.values()):
            self._drain_one(reply)
        if not self.running:
            self._timer.stop()

    def _drain_one(self, reply: Reply) -> None:
        import engine

        pieces: list[str] = []
        progress = last = None
        n_tokens = 0
        while reply.events:
            event = reply.events.popleft()
            if isinstance(event, engine.TextDelta):
                pieces += self._opening(reply, progress) if not pieces else []
                pieces.append(event.text)
                n_tokens += len(event.tokens)
                self.tokens.take(reply.message.id, event.probs)
            elif isinstance(event, engine.PromptProgress):
                progress = event
            else:
                last = last or event
        conversation_id, message_id = reply.message.conversation_id, reply.message.id
        phase = reply.phase()
        if progress is not None:
            reply.progress = progress
        if progress is not None and not n_tokens:
            self.reading.emit(conversation_id, message_id, progress)
        text = "".join(pieces)
        if text:
            reply.add(text)
            self.text_came.emit(conversation_id, message_id, text)
        if n_tokens:
            if not reply.maker and self.engine.state == "ready":
                reply.maker = self._maker()
            reply.speed.add(n_tokens)
            self.measured.emit(
                conversation_id, message_id, reply.speed.n_tokens, reply.speed.rate()
            )
        if reply.phase() != phase:
            self.busy_changed.emit()
        if last is not None:
            self._end(reply, last)
        elif reply.is_dirty and time.monotonic() - reply.committed_at >= COMMIT_S:
            self._commit(reply)

    def _opening(self, reply: Reply, progress: Any) -> list[str]:
        """Return the tag of a thought that the prompt has opened, before its first word."""
        known = progress or reply.progress
        if known is None or not known.is_reasoning or reply.text():
            return []
        if self.tokens.of(reply.message.id) is not None:
            self.tokens.begin(reply.message.id, f"{OPEN}\n")
        return [f"{OPEN}\n"]

    def _maker(self) -> dict[str, Any]:
        """Return what the record of an answer keeps of the model that writes it."""
        engine = self.engine
        return {"model": engine.name, "mark": engine.mark, "context": engine.context()}

    def _commit(self, reply: Reply) -> None:
        reply.committed_at = time.monotonic()
        try:
            self._database.update_message(reply.message.id, text=reply.text())
            reply.is_dirty = False
        except AppError as error:
            self.trouble.emit(str(error))

    def _end(self, reply: Reply, last: Any) -> None:
        import engine

        if isinstance(last, engine.Failed):
            message = last.message or tr("The model was taken out of memory before it answered.")
            details = self.engine.details or f"{last.kind}: {last.message}"
            error = {"kind": last.kind, "message": message, "details": details}
            self._settle(reply, "failed", {"error": error})
            return
        state = "cancelled" if last.stop_type == "cancelled" else "finished"
        self._settle(reply, state, reply.record(last))

    def _settle(self, reply: Reply, state: str, record: dict[str, Any]) -> None:
        """Store the last state of an answer, the record with all that made it."""
        text = reply.text()
        known = reply.unended() | {"changes": reply.changes}
        record = known | record | reply.told
        record |= {"start": len(reply.message.text), "end": len(text)}
        record |= used(reply.request, self.engine.options) | (reply.maker or self._maker())
        if reply.cut_by and state == "cancelled":
            record["cut_by"] = reply.cut_by
        self.running.pop(reply.message.conversation_id, None)
        settled = reply.message
        try:
            self._database.update_message(reply.message.id, text=text, state=state, record=record)
            settled = self._database.message(reply.message.id)
        except (AppError, TypeError) as error:
            self.trouble.emit(sentence(error))
        self.settled.emit(reply.message.conversation_id, settled)
        self.busy_changed.emit()
        if reply.then is not None and state == "finished":
            reply.then(settled)
