"""What the command line asks the open window to do: load, ask, picture, end."""

import argparse
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer

from app.chats.chat_file import SUFFIX

_PICTURE = (1440, 900)  # pixels, the size that the look was designed for
_SETTLE_MS = 400  # for the last frame, the fonts and the scan to be on the picture


class Errand(QObject):
    """Carries out the options of the command line once the window is on the screen."""

    def __init__(self, window: Any, options: argparse.Namespace) -> None:
        super().__init__(window)
        self._window = window
        self._options = options
        self._is_asked = False
        self._is_done = False

    def start(self) -> None:
        """Begin as soon as the event loop runs."""
        if self._options.screenshot is not None:
            self._window.resize(*_PICTURE)
        QTimer.singleShot(0, self._begin)
        if self._options.quit_after is not None:
            QTimer.singleShot(round(1000 * self._options.quit_after), self._end)

    def _begin(self) -> None:
        window, options = self._window, self._options
        window.begin()
        services = window.services
        services.engine.changed.connect(self._on_engine_changed)
        services.replies.settled.connect(self._on_settled)
        file = Path(options.file) if options.file else None
        is_chat = file is not None and file.suffix.lower() == SUFFIX
        if file is not None and is_chat:
            window.open_file(file)
        wanted = options.model or (None if is_chat else file) or _last_model(services)
        if wanted:
            window.load_model(Path(wanted))
        elif options.screenshot is not None:
            self._finish()

    def _on_engine_changed(self) -> None:
        state = self._window.services.engine.state
        if state == "failed":
            self._finish()
        elif state == "ready" and self._options.prompt is None:
            self._finish()
        elif state == "ready" and not self._is_asked:
            self._is_asked = True
            self._window.pane.send(self._options.prompt)

    def _on_settled(self, _conversation_id: int, message: Any) -> None:
        if self._is_asked and message.state != "running":
            self._finish()

    def _finish(self) -> None:
        if self._options.screenshot is not None and not self._is_done:
            self._is_done = True
            QTimer.singleShot(_SETTLE_MS, self._picture)

    def _picture(self) -> None:
        self._window.grab().save(str(self._options.screenshot))
        self._end()

    def _end(self) -> None:
        self._window.services.replies.stop_all()
        self._window.close()


def _last_model(services: Any) -> Path | None:
    last = services.settings["last_model"]
    if services.settings["load_last_model"] and last and Path(last).exists():
        return Path(last)
    return None
