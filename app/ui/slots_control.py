"""Ties the Slots tab to the engine: refreshed while it is on show, files chosen for its acts."""

from pathlib import Path

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from app.services.everything import Services
from app.services.figures import speed
from app.services.slots import SUFFIX
from app.strings import count, tr
from app.ui.guard import Guard
from app.ui.theme import theme
from app.ui.widgets.inspector import Inspector
from app.ui.widgets.slots_panel import SlotsPanel

_EVERY_MS = 250


class SlotsControl(QObject):
    """Owns the panel of slots.

    Signals:
        chosen(int): show this conversation.
    """

    chosen = Signal(int)

    def __init__(
        self, services: Services, inspector: Inspector, guard: Guard, window: QWidget
    ) -> None:
        super().__init__(window)
        self._services = services
        self._inspector = inspector
        self._guard = guard
        self._window = window
        self.panel = SlotsPanel()
        self._timer = QTimer(self)
        self._timer.setInterval(_EVERY_MS)
        self._timer.timeout.connect(self._refresh_if_shown)
        services.slots.changed.connect(self.refresh)
        services.slots.done.connect(guard.say)
        services.slots.failed.connect(guard.say)
        services.replies.busy_changed.connect(self.refresh)
        theme.changed.connect(self._build)
        self._build()

    def _build(self) -> None:
        self.panel = SlotsPanel()
        self.panel.action.connect(self.act)
        self.panel.chosen.connect(self.chosen)
        self._inspector.set_page("slots", tr("Slots"), self.panel)
        self.refresh()

    def refresh(self) -> None:
        """Show the slots as they are now; keep doing so while an answer runs."""
        is_busy = bool(self._services.replies.running)
        if is_busy != self._timer.isActive():
            self._timer.start() if is_busy else self._timer.stop()
        self.panel.show_slots(self._services.slots.all(), self._title, self._totals())

    def stop(self) -> None:
        """Refresh no more: the window is about to go."""
        self._timer.stop()

    def _refresh_if_shown(self) -> None:
        if self.panel.isVisible():
            self.refresh()

    def _title(self, conversation_id: int) -> str:
        title = self._guard.attempt(
            lambda: self._services.database.conversation(conversation_id).title
        )
        return title or tr("New chat")

    def _totals(self) -> str:
        client = self._services.engine.client
        if client is None or self._services.engine.state != "ready":
            return ""
        metrics = client.metrics()
        lines = []
        known = metrics.prompt_tokens_cached_total
        whole = known + metrics.prompt_tokens_total
        if whole:
            lines.append(
                tr(
                    "Prompts: {all} tokens, {known} of them from memory ({part}%)",
                    all=count(whole),
                    known=count(known),
                    part=round(100 * known / whole),
                )
            )
        if metrics.tokens_predicted_seconds_total:
            rate = metrics.tokens_predicted_total / metrics.tokens_predicted_seconds_total
            written = count(metrics.tokens_predicted_total)
            lines.append(tr("Answers: {n} tokens, {rate}/s", n=written, rate=speed(rate)))
        if metrics.requests_deferred:
            lines.append(tr("Waiting in line: {n}", n=count(metrics.requests_deferred)))
        return "\n".join(lines)

    # ------------------------------------------------------------ acts

    def act(self, name: str, id_slot: int) -> None:
        """Save, restore or erase a slot; for the first two the person names a file."""
        slots = self._services.slots
        if name == "erase":
            slots.erase(id_slot)
            return
        dialog = self._dialog(name, id_slot)
        act = slots.save if name == "save" else slots.restore
        dialog.fileSelected.connect(lambda file: act(id_slot, Path(file)))
        dialog.open()

    def _dialog(self, name: str, id_slot: int) -> QFileDialog:
        folder = self._services.paths.snapshots
        self._guard.attempt(lambda: _make(folder))
        words = tr("Save the memory of a slot") if name == "save" else tr("Open a saved memory")
        dialog = QFileDialog(self._window, words, str(folder))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setNameFilter(tr("Saved memory (*{suffix})", suffix=SUFFIX))
        if name == "save":
            dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
            dialog.setDefaultSuffix(SUFFIX.lstrip("."))
            dialog.selectFile(f"{tr('slot {id}', id=id_slot + 1)}{SUFFIX}")
        else:
            dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        return dialog


def _make(folder: Path) -> None:
    from app.files import storage_error

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(error, folder / "x") from error
