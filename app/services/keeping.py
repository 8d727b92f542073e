"""One conversation on its way to the disk, and what is said while a person waits for that."""

import time
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.services.engine_service import Client
from app.strings import tr


@dataclass
class Keeping:
    """A conversation that is to be kept in a file, in about that many seconds.

    `mark` tells the model whose memory it is; "" when nobody wants the file any more. `done` is
    the engine's future once it was asked.
    """

    conversation_id: int
    mark: str
    prompt: list[dict[str, str]]
    path: Path
    seconds: float
    done: "Future[Any] | None" = None

    @property
    def is_done(self) -> bool:
        """Tell whether the engine has answered."""
        return self.done is not None and self.done.done()

    def start(self, client: Client) -> "Future[Any]":
        """Ask the engine; what goes wrong is in the future."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.done = client.keep(self.prompt, self.path)
        except Exception as error:  # whatever it is, it belongs to this conversation alone
            self.done = Future()
            self.done.set_exception(error)
        return self.done

    def fits(self, until: float) -> bool:
        """Tell whether it can be written until a time of the monotonic clock."""
        return time.monotonic() + self.seconds < until

    def wait(self, until: float) -> None:
        """Wait for the engine, whatever it answers, until a time of the monotonic clock."""
        if self.done is not None:
            wait([self.done], max(0.0, until - time.monotonic()))


def saving_words(n: int) -> str:
    """Return what is said while conversations are being written."""
    if n == 1:
        return tr("Saving the memory of 1 chat…")
    return tr("Saving the memory of {n} chats…", n=n)
