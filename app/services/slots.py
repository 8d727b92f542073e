"""What the engine remembers of which conversation: its slots, and what is kept on the disk."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.services.chats import Chats
from app.services.engine_service import Client, EngineService, sentence
from app.services.jobs import Jobs
from app.services.memories import Memories
from app.services.reply import Replies
from app.strings import count, megabytes, tr

SUFFIX = ".safetensors"  # what the engine writes a slot's memory to
_END_TOKENS = 8  # that a template writes behind an answer, and nobody has read yet


@dataclass(frozen=True)
class SlotView:
    """One slot as the window shows it; counts are tokens, `rate` tokens per second (0: none)."""

    id: int
    state: str
    conversation_id: int
    n_tokens: int
    n_ctx: int
    n_prompt: int
    n_cached: int
    n_generated: int
    n_bytes: int
    rate: float

    @property
    def is_idle(self) -> bool:
        """Tell whether it may be saved, restored and erased."""
        return self.state == "idle"


@dataclass(frozen=True)
class SavedMemory:
    """The memory of a conversation on the disk: tokens and bytes."""

    n_tokens: int
    n_bytes: int


class Slots(QObject):
    """Knows which conversation is in which slot; saves, restores and erases slots by hand.

    Signals:
        changed(): another conversation is in a slot, or a slot was written, read or erased.
        done(str): an act by hand ended well; a sentence.
        failed(str): an act by hand failed; a sentence with cause and remedy.
    """

    changed = Signal()
    done = Signal(str)
    failed = Signal(str)

    def __init__(
        self,
        jobs: Jobs,
        engine: EngineService,
        replies: Replies,
        memories: Memories,
        chats: Chats,
    ) -> None:
        super().__init__()
        self._jobs = jobs
        self._engine = engine
        self._replies = replies
        self._memories = memories
        self._chats = chats
        self._owners: dict[int, int] = {}  # slot → conversation
        engine.changed.connect(self._on_engine_changed)
        memories.changed.connect(self.changed)
        replies.busy_changed.connect(self._note_running)
        replies.settled.connect(self._on_settled)

    # ------------------------------------------------------------ asking

    def all(self) -> list[SlotView]:
        """Return every slot as it is now; empty while no model is loaded."""
        self._note_running()
        tasks = self._running_tasks()
        return [self._view(status, tasks) for status in self._statuses()]

    def of_conversation(self, conversation_id: int) -> SlotView | None:
        """Return the slot that remembers a conversation, or None."""
        for slot in self.all():
            if slot.conversation_id == conversation_id and slot.n_tokens:
                return slot
        return None

    def saved_memory(self, conversation_id: int) -> SavedMemory | None:
        """Return what is kept of a conversation on the disk, or None; touches no disk."""
        kept = self._memories.saved(conversation_id)
        return SavedMemory(kept.n_tokens, kept.n_bytes) if kept is not None else None

    def lamps(self) -> Callable[[int], str]:
        """Return what tells the lamp of any conversation as of now; cheap for thousands of them."""
        lit = {slot.conversation_id: "ready" for slot in self.all() if slot.n_tokens}
        lit |= dict.fromkeys(self._replies.running, "running")

        def lamp(conversation_id: int) -> str:
            dark = "saved" if self.saved_memory(conversation_id) else "cold"
            return lit.get(conversation_id) or dark

        return lamp

    def lamp(self, conversation_id: int) -> tuple[str, str]:
        """Return the lamp of a conversation and what it means in words."""
        reply = self._replies.running.get(conversation_id)
        if reply is not None:
            return "running", self._running_words(conversation_id, reply)
        slot = self.of_conversation(conversation_id)
        if slot is not None:
            words = tr(
                "ready · {n} tokens · {size}",
                n=count(slot.n_tokens),
                size=megabytes(slot.n_bytes),
            )
            return "ready", words
        saved = self.saved_memory(conversation_id)
        if saved is not None:
            words = tr(
                "on disk · {n} tokens · {size}",
                n=count(saved.n_tokens),
                size=megabytes(saved.n_bytes),
            )
            return "saved", words
        return "cold", tr("cold · must be read again before it answers")

    def _running_words(self, conversation_id: int, reply: Any) -> str:
        phase = reply.phase()
        if phase == "writing":
            return tr("writing · {n} tokens", n=count(reply.speed.n_tokens))
        if phase == "reading":
            known = reply.progress.n_cached + reply.progress.n_read
            all_ = reply.progress.n_prompt
            return tr("reading · {n} of {all} tokens", n=count(known), all=count(all_))
        place = self._replies.place_in_line(conversation_id)
        return line_words(place) if place else tr("waiting for the model")

    # ------------------------------------------------------------ acting

    def save(self, id_slot: int, path: Path) -> None:
        """Write what a slot remembers to a file, beside the window."""
        path = path if path.suffix else path.with_suffix(SUFFIX)
        self._act(
            lambda client: client.save_slot(id_slot, path),
            lambda done: tr(
                "{n} tokens are saved in “{name}”.", n=count(done.n_tokens), name=path.name
            ),
        )

    def restore(self, id_slot: int, path: Path) -> None:
        """Read a slot's memory from a file, beside the window."""

        elsewhere = {c for slot, c in self._owners.items() if slot != id_slot}

        def restore(client: Client) -> tuple[Any, int]:
            done = client.restore_slot(id_slot, path)
            return done, self._owner_of(client, done.n_tokens, elsewhere)

        def say(found: tuple[Any, int]) -> str:
            done, conversation_id = found
            self._owners.pop(id_slot, None)
            if conversation_id:
                self._own(id_slot, conversation_id)
            return tr("{n} tokens came back from “{name}”.", n=count(done.n_tokens), name=path.name)

        self._act(restore, say)

    def _owner_of(self, client: Client, n_tokens: int, elsewhere: set[int]) -> int:
        """Return the conversation that a slot with so many tokens remembers, 0 if none; slow.

        Those that other slots remember are left out.
        """
        for conversation in self._chats.database.conversations():
            if conversation.leaf_id is None or conversation.id in elsewhere:
                continue
            leaf = self._chats.database.message(conversation.leaf_id)
            if abs(leaf.record.get("n_used", 0) - n_tokens) > _END_TOKENS:
                continue
            known = client.known_prefix(self._chats.prompt_of(leaf))
            if known.where == "slot" and known.n_prompt - known.n_tokens <= _END_TOKENS:
                return conversation.id
        return 0

    def erase(self, id_slot: int) -> None:
        """Forget what a slot remembers."""

        def say(done: Any) -> str:
            self._owners.pop(id_slot, None)
            return tr("Slot {id} is empty.", id=id_slot + 1)

        self._act(lambda client: client.erase_slot(id_slot), say)

    def _act(self, act: Any, say: Any) -> None:
        client = self._engine.client
        if client is None:
            self.failed.emit(tr("No model is loaded."))
            return

        def land(result: Any) -> None:
            self.done.emit(say(result))
            self.changed.emit()

        def refuse(error: Exception, _trace: str) -> None:
            self.failed.emit(sentence(error))

        self._jobs.run(lambda: act(client), land, refuse)

    # ------------------------------------------------------------ who is where

    def _statuses(self) -> list[Any]:
        ready = self._engine.state == "ready" and self._engine.client is not None
        return list(self._engine.client.slots()) if ready else []

    def _running_tasks(self) -> dict[int, tuple[int, Any]]:
        """Return task → (conversation, reply) of everything that was handed to the engine."""
        return {
            reply.handle.id_task: (conversation_id, reply)
            for conversation_id, reply in self._replies.running.items()
            if reply.handle is not None
        }

    def _note_running(self) -> None:
        if not self._replies.running:
            return
        tasks = self._running_tasks()
        for status in self._statuses():
            if status.id_task in tasks:
                self._own(status.id, tasks[status.id_task][0])

    def _view(self, status: Any, tasks: dict[int, tuple[int, Any]]) -> SlotView:
        reply = tasks.get(status.id_task, (0, None))[1]
        return SlotView(
            id=status.id,
            state=status.state,
            conversation_id=self._owners.get(status.id, 0) if status.n_tokens else 0,
            n_tokens=status.n_tokens,
            n_ctx=status.n_ctx,
            n_prompt=status.n_prompt,
            n_cached=status.n_cached,
            n_generated=status.n_generated,
            n_bytes=status.n_bytes,
            rate=reply.speed.rate() if reply is not None else 0.0,
        )

    def _own(self, id_slot: int, conversation_id: int) -> None:
        """Note that a slot holds a conversation: it holds no other, and no other slot holds it."""
        others = {s: c for s, c in self._owners.items() if c != conversation_id}
        self._owners = others | {id_slot: conversation_id}

    def _on_settled(self, conversation_id: int, message: Any) -> None:
        id_slot = message.record.get("id_slot")
        if message.state != "running" and isinstance(id_slot, int) and id_slot >= 0:
            self._own(id_slot, conversation_id)
            self.changed.emit()

    def _on_engine_changed(self) -> None:
        if self._engine.state != "ready":
            self._owners.clear()
        self.changed.emit()


def line_words(place: int) -> str:
    """Return a place in the waiting line in words: next, 2nd, 3rd in line."""
    if place <= 1:
        return tr("next in line")
    return tr("{place} in line", place={2: "2nd", 3: "3rd"}.get(place, f"{place}th"))
