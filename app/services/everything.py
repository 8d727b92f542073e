"""Everything the window is built on, made once at start and ended in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.chats.database import ChatDatabase
    from app.paths import Paths
    from app.presets import Presets
    from app.services.chat_files import ChatFiles
    from app.services.chats import Chats
    from app.services.engine_service import EngineService
    from app.services.jobs import Jobs
    from app.services.library import Library
    from app.services.memories import Memories
    from app.services.reply import Replies
    from app.services.slots import Slots
    from app.settings import Settings


@dataclass
class Services:
    """The parts below the window.

    `n_interrupted` is how many answers the last run left unfinished, when it did not end well.
    """

    paths: Paths
    settings: Settings
    database: ChatDatabase
    jobs: Jobs
    engine: EngineService
    replies: Replies
    chats: Chats
    library: Library
    presets: Presets
    slots: Slots
    memories: Memories
    chat_files: ChatFiles
    n_interrupted: int = 0

    def close(self) -> None:
        """Stop answers, store them and what the engine remembers of them, end every thread."""
        self.replies.stop_all()
        self.library.close()
        self.engine.close()
        self.memories.finish()
        self.jobs.close()
        self.database.close()
