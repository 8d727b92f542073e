"""Where acts that may fail are tried, and where their reasons are shown."""

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.errors import AppError


class Guard(QObject):
    """Tries acts on the disk and passes on short lines for the person.

    Signals:
        said(str, object): a sentence, with a way back or None.
    """

    said = Signal(str, object)

    def attempt(self, act: Callable[[], Any]) -> Any:
        """Return what the act returns; when the disk refuses, say why and return None."""
        try:
            return act()
        except AppError as error:
            self.said.emit(str(error), None)
            return None

    def say(self, sentence: str, undo: Callable[[], None] | None = None) -> None:
        """Show a short line, with a way back if there is one."""
        self.said.emit(sentence, undo)
