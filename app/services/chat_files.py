"""Saves a conversation with its memory as one file, and opens such a file as a conversation."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.chats.chat_file import (
    ChatFile,
    Remembered,
    passing_file,
    read_chat_file,
    write_chat_file,
)
from app.chats.export import json_text, read_json
from app.errors import AppError
from app.files import storage_error
from app.services.chats import Chats
from app.services.engine_service import EngineService, sentence
from app.services.jobs import Jobs
from app.services.kept_files import file_name
from app.services.memories import Memories
from app.strings import count, tr


@dataclass(frozen=True)
class _Parcel:
    """A conversation on its way into a file."""

    path: Path
    title: str
    chat: str


class ChatFiles(QObject):
    """Everything slow happens beside the window; a file that cannot be used changes nothing.

    Signals:
        opened(int): a file became a conversation, with its memory if it fits the model.
        said(str): how saving or opening ended, a sentence.
    """

    opened = Signal(int)
    said = Signal(str)

    def __init__(self, jobs: Jobs, engine: EngineService, chats: Chats, memories: Memories) -> None:
        super().__init__()
        self._jobs, self._engine = jobs, engine
        self._chats, self._memories = chats, memories
        self._waiting: list[Callable[[], None]] = []  # for the model that is being loaded
        engine.changed.connect(self._on_engine_changed)

    # ------------------------------------------------------------ saving

    def save(self, conversation_id: int, path: Path) -> None:
        """Write a conversation, and what the model remembers of it, to a file.

        Raises StorageError if the conversation cannot be read.
        """
        database = self._chats.database
        conversation = database.conversation(conversation_id)
        parcel = _Parcel(path, conversation.title, json_text(database, [conversation_id]))
        client = self._engine.client
        if self._engine.state != "ready" or client is None or conversation.leaf_id is None:
            self._write_kept(parcel, conversation_id)
            return
        folder = self._memories.files.folder
        try:
            memory = passing_file(folder)
        except OSError as error:
            raise storage_error(error, folder / path.name) from error
        prompt = self._chats.prompt_of(database.message(conversation.leaf_id))
        model, mark = self._engine.name, self._engine.mark

        def write(done: Any) -> None:
            remembered = Remembered(model, mark, done.n_tokens) if done.n_tokens else Remembered()
            if not done.n_tokens:
                self._drop(memory)
            self._write(parcel, remembered, memory if done.n_tokens else None, is_passing=True)

        def refuse(error: BaseException) -> None:
            self._drop(memory)
            self.said.emit(_reason(error))

        self._follow(client.export_memory(prompt, memory), write, refuse)

    def _write_kept(self, parcel: _Parcel, conversation_id: int) -> None:
        """Without the model: what is kept of the conversation on the disk goes along."""
        kept = self._memories.saved(conversation_id)
        if kept is None:
            self._write(parcel, Remembered(), None)
        else:
            remembered = Remembered("", kept.mark, kept.n_tokens)
            self._write(parcel, remembered, self._memories.files.folder / kept.name)

    def _write(
        self, parcel: _Parcel, remembered: Remembered, memory: Path | None, is_passing: bool = False
    ) -> None:
        def write() -> None:
            try:
                write_chat_file(parcel.path, parcel.chat, remembered, memory)
            finally:
                if is_passing and memory is not None:
                    memory.unlink(missing_ok=True)

        title, name = parcel.title or tr("New chat"), parcel.path.name
        words = tr("“{title}” is saved in “{name}”, without memory.", title=title, name=name)
        if memory is not None:
            words = tr(
                "“{title}” is saved with its memory of {n} tokens in “{name}”.",
                title=title,
                n=count(remembered.n_tokens),
                name=name,
            )
        self._run(write, lambda _: self.said.emit(words))

    # ------------------------------------------------------------ opening

    def open(self, path: Path) -> None:
        """Make a conversation of a file; it goes on where it was if the model fits."""
        folder = self._memories.files.folder
        self._run(lambda: read_chat_file(path, folder), self._store)

    def _store(self, file: ChatFile) -> None:
        try:
            (conversation, *_) = read_json(self._chats.database, file.chat)
        except (AppError, ValueError) as error:
            self._drop(file.memory)
            self.said.emit(str(error) if isinstance(error, AppError) else tr("It holds no chat."))
            return
        self._chats.listed.emit()
        self.opened.emit(conversation.id)
        if file.memory is not None:
            self._take_over(conversation.id, file.remembered, file.memory)

    def _take_over(self, conversation_id: int, remembered: Remembered, memory: Path) -> None:
        client = self._engine.client
        if self._engine.state == "loading":
            self._waiting.append(lambda: self._take_over(conversation_id, remembered, memory))
            return
        if self._engine.state != "ready" or client is None:
            self._wait_for_model(conversation_id, remembered, memory)
            return
        mark = self._engine.mark
        kept = self._memories.files.folder / file_name(conversation_id, mark)

        def note(done: Any) -> None:
            self._drop(memory)
            self._memories.note(conversation_id, mark, done.n_tokens)
            self.said.emit(
                tr("It goes on with nothing read again: {n} tokens.", n=count(done.n_tokens))
            )

        def refuse(error: BaseException) -> None:
            self._drop(memory)
            self.said.emit(tr("The chat must be read again: {why}", why=_reason(error)))

        self._follow(client.import_memory(memory, kept), note, refuse)

    def _wait_for_model(self, conversation_id: int, remembered: Remembered, memory: Path) -> None:
        """Put a memory where its model will find, and check, it."""
        if not remembered.mark:
            self._drop(memory)
            return
        kept = self._memories.files.folder / file_name(conversation_id, remembered.mark)
        self._run(
            lambda: memory.replace(kept),
            lambda _: self._memories.note(conversation_id, remembered.mark, remembered.n_tokens),
        )

    def _on_engine_changed(self) -> None:
        if self._engine.state != "loading":
            waiting, self._waiting = self._waiting, []
            for go_on in waiting:
                go_on()

    # ------------------------------------------------------------ beside the window

    def _run(self, work: Callable[[], Any], done: Callable[[Any], Any]) -> None:
        self._jobs.run(work, done, lambda error, _: self.said.emit(sentence(error)))

    def _drop(self, memory: Path | None) -> None:
        if memory is not None:
            self._run(lambda: memory.unlink(missing_ok=True), lambda _: None)

    def _follow(
        self,
        reply: "Future[Any]",
        done: Callable[[Any], Any],
        failed: Callable[[BaseException], None],
    ) -> None:
        """Go on here, on the GUI thread, when the engine has answered."""

        def land() -> None:
            error = reply.exception()
            if error is None:
                done(reply.result())
            else:
                failed(error)

        reply.add_done_callback(lambda _: self._jobs.post(land))


def _reason(error: BaseException) -> str:
    return sentence(error) if isinstance(error, Exception) else str(error)
