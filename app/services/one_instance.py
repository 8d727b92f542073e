"""One window per data folder: a second start hands its file to the first and ends.

Decision: a lock file and a watched request file, not a local socket: the program then opens no
socket of any kind, and one that was killed leaves nothing that stops the next.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QFileSystemWatcher, QLockFile, QObject, Signal

from app.errors import StorageError
from app.files import write_whole


class OneInstance(QObject):
    """The lock of the running program and the mailbox of later starts.

    Attributes:
        is_listening: tells whether wishes can still be granted; not while a window closes.

    Signals:
        asked(str): another start wants the window, with a file to open or "".
    """

    asked = Signal(str)

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._request = folder / "open-request.json"
        self._lock = QLockFile(str(folder / "running.lock"))
        self._lock.setStaleLockTime(0)
        self._watcher: QFileSystemWatcher | None = None
        self.is_listening: Callable[[], bool] = lambda: True

    def claim(self) -> bool:
        """Become the one instance; False when another one runs."""
        if not self._lock.tryLock(0):
            return False
        self._request.unlink(missing_ok=True)
        self._watcher = QFileSystemWatcher([str(self._request.parent)], self)
        self._watcher.directoryChanged.connect(self._on_changed)
        return True

    def hand_over(self, file: str) -> bool:
        """Ask the running instance to open `file` ("" only raises its window)."""
        try:
            write_whole(self._request, json.dumps({"file": file}).encode())
        except StorageError:
            return False
        return True

    def answer(self, patience_s: float) -> str:
        """Wait for what becomes of a handed over file: "taken", "free" or "silent".

        When the running instance was about to end, this one takes its place: "free".
        """
        until = time.monotonic() + patience_s
        while time.monotonic() < until:
            if not self._request.exists():
                return "taken"
            if self.claim():
                return "free"
            time.sleep(0.05)
        return "silent"

    def close(self) -> None:
        """Let the next start be the one instance."""
        if self._watcher is not None:
            self._watcher.deleteLater()
            self._watcher = None
        self._lock.unlock()

    def _on_changed(self) -> None:
        if not self.is_listening():
            return  # the wish stays, for who comes next
        try:
            wish = json.loads(self._request.read_text(encoding="utf-8"))
            self._request.unlink(missing_ok=True)
        except (OSError, ValueError):
            return
        self.asked.emit(str(wish.get("file", "")) if isinstance(wish, dict) else "")
