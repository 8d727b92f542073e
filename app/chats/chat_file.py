"""A conversation and what a model remembers of it, as one `.inglenook` file that can be passed on.

The file is a zip archive of `about.json`, `chat.json` (`export.json_text`) and, stored as it is,
`memory.safetensors` (written and checked by the engine). Nothing in it is ever run.
"""

import json
import os
import re
import shutil
import tempfile
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from app.chats.export import MAX_BYTES
from app.errors import ExchangeError
from app.files import replace_whole, storage_error
from app.strings import tr

SUFFIX = ".inglenook"
PASSING = ".passing"  # ends the name of a memory on its way into a chat file or out of one
FORMAT, VERSION = "inglenook conversation with memory", 1
_ABOUT, _CHAT, _MEMORY = "about.json", "chat.json", "memory.safetensors"
_ABOUT_BYTES = 1 << 16
_MARK = re.compile(r"[0-9a-f]{16}|")


@dataclass(frozen=True)
class Remembered:
    """What a model remembers: its name, the mark that tells models apart, and how many tokens.

    Without a memory all of it is empty.
    """

    model: str = ""
    mark: str = ""
    n_tokens: int = 0


@dataclass(frozen=True)
class ChatFile:
    """An opened file: the text for `export.read_json`, and where its memory was put (None: none).

    The memory belongs to whoever opened the file, and is deleted if nobody takes it over.
    """

    chat: bytes
    remembered: Remembered
    memory: Path | None


def write_chat_file(
    path: Path, chat: str, remembered: Remembered, memory: Path | None = None
) -> None:
    """Write a conversation and its memory to `path`, whole or not at all; raises StorageError."""
    about = {"format": FORMAT, "version": VERSION, **asdict(remembered)}

    def write(file: BinaryIO) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(_ABOUT, json.dumps(about))
            archive.writestr(_CHAT, chat)
            if memory is not None:
                archive.write(memory, _MEMORY, zipfile.ZIP_STORED)

    replace_whole(path, write)


def passing_file(folder: Path) -> Path:
    """Make an empty file in `folder` for a memory on its way; whoever asked deletes it.

    Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=".chat-", suffix=PASSING, dir=folder)
    os.close(descriptor)
    return Path(name)


def read_chat_file(path: Path, folder: Path) -> ChatFile:
    """Read a conversation, and copy its memory to a new file in `folder`.

    Raises ExchangeError for anything that `write_chat_file` did not write, StorageError for the
    disk; no copy is left then. The engine, not this, tells whether the memory is sound.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            remembered = _remembered(_read(archive, _ABOUT, _ABOUT_BYTES))
            chat = _read(archive, _CHAT, MAX_BYTES)
            has_memory = _MEMORY in archive.namelist()
            memory = _copied(archive, path, folder) if has_memory else None
            return ChatFile(chat, remembered, memory)
    except OSError as error:
        raise storage_error(error, path) from error
    except ExchangeError:
        raise
    except (zipfile.BadZipFile, ValueError, LookupError, NotImplementedError, EOFError) as error:
        raise _damaged(str(error)) from error
    except Exception as error:  # zlib.error, RuntimeError for encrypted members, and their like
        raise _damaged(f"{type(error).__name__}: {error}") from error


def _read(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    with archive.open(name) as member:
        content = member.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"{name} is too large")
    return content


def _remembered(content: bytes) -> Remembered:
    about: Any = json.loads(content)
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ValueError("about.json names another format")
    if about.get("version") != VERSION:
        raise ExchangeError(
            tr("This chat was saved by a newer version of the program; use that one to open it.")
        )
    model, mark, n_tokens = about.get("model"), about.get("mark"), about.get("n_tokens")
    if not (isinstance(model, str) and isinstance(mark, str) and _MARK.fullmatch(mark)):
        raise ValueError("about.json names no model")
    if not isinstance(n_tokens, int) or not 0 <= n_tokens < 1 << 31:
        raise ValueError("about.json counts no tokens")
    return Remembered(model[:200], mark, n_tokens)


def _copied(archive: zipfile.ZipFile, path: Path, folder: Path) -> Path:
    """Copy the memory out of the archive; what is not compressed cannot be larger than it."""
    entry = archive.getinfo(_MEMORY)
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > path.stat().st_size:
        raise ValueError("the memory is not stored as it is")
    passing = passing_file(folder)
    try:
        with open(passing, "wb") as copy, archive.open(entry) as memory:
            shutil.copyfileobj(memory, copy, 1 << 20)
    except BaseException:
        passing.unlink(missing_ok=True)
        raise
    return passing


def _damaged(reason: str) -> ExchangeError:
    return ExchangeError(
        tr("This file is no chat that was saved here, or it is damaged ({reason}).", reason=reason)
    )
