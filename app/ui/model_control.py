"""What a person does with models: choose, open, drop, load again, unload, get the first one."""

from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QPoint, Qt, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from app.chats.chat_file import SUFFIX
from app.services.everything import Services
from app.services.machine import device_line, memory_line, read_level
from app.services.starter import Starter
from app.strings import count, tr
from app.ui.guard import Guard
from app.ui.pages.chat import ChatPane
from app.ui.panes import Panes
from app.ui.theme import theme
from app.ui.widgets.model_panel import ModelPanel, fact_rows
from app.ui.widgets.model_picker import ModelPicker
from app.ui.widgets.status import StatusLine

PACKAGE = ".whl"  # what the starter model is published in; a person may have fetched it by hand


class ModelControl(QObject):
    """Ties the chooser, the Model tab, the welcome card and the status line to the engine.

    Signals:
        setting_changed(str, object): a load setting was changed.
    """

    setting_changed = Signal(str, object)

    def __init__(
        self,
        services: Services,
        panes: Panes,
        status: StatusLine,
        guard: Guard,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._services = services
        self._panes = panes
        self._status = status
        self._level = ""
        self._guard = guard
        self._window = window
        self.starter = Starter(services.jobs, services.paths)
        self.panel = ModelPanel(services.settings)
        self.picker = ModelPicker(window)
        self._connect()
        self.show_engine()

    def _connect(self) -> None:
        services = self._services
        self._panes.made.connect(self._adopt)
        for pane in self._panes.all():
            self._adopt(pane)
        self.panel.choose_wanted.connect(self.choose)
        self.panel.unload_wanted.connect(services.engine.unload)
        self.panel.reload_wanted.connect(self.reload)
        self.panel.changed.connect(self.setting_changed)
        self.picker.chosen.connect(self.load)
        self.picker.file_wanted.connect(self.open_file)
        self.picker.rescan_wanted.connect(self.rescan)
        self.starter.progressed.connect(self._on_starter_progressed)
        self.starter.arrived.connect(self._on_starter_arrived)
        self.starter.failed.connect(self._on_starter_failed)
        services.engine.changed.connect(self.show_engine)
        services.engine.progressed.connect(self._show_progress)
        services.library.changed.connect(self._show_library)
        services.replies.busy_changed.connect(self._show_state)
        services.replies.measured.connect(self._on_measured)

    def _adopt(self, pane: ChatPane) -> None:
        """Let a pane choose, open and fetch models."""
        welcome = pane.welcome
        pane.model_wanted.connect(lambda: self.choose(pane))
        pane.remedy_wanted.connect(self._on_remedy)
        welcome.chosen.connect(self.load)
        welcome.file_wanted.connect(self.open_file)
        welcome.starter_wanted.connect(self.starter.fetch)
        welcome.cancelled.connect(self.starter.cancel)
        welcome.show_starter(self.starter.model)
        welcome.set_models(self._services.library.models, self._services.library.is_scanning)

    def begin(self) -> None:
        """Read the catalogue, look for models, and find out what this machine computes with."""
        self._guard.attempt(self.starter.read_catalogue)
        for pane in self._panes.all():
            pane.welcome.show_starter(self.starter.model)
        self.rescan()
        self.show_machine()
        self._services.jobs.run(read_level, self._on_level, lambda _error, _trace: None)

    def _on_level(self, level: str) -> None:
        self._level = level
        self.show_machine()

    def _on_remedy(self, remedy: str) -> None:
        acts = {
            "choose": self.choose,
            "again": self.reload,
            "keep": self._services.engine.dismiss_refusal,
        }
        acts[remedy]()

    # ------------------------------------------------------------ acts

    def choose(self, pane: ChatPane | None = None) -> None:
        """Open the chooser under the chip of a pane, the current one if none is given."""
        chip = (pane or self._panes.current).header.chip
        self._show_library()
        self.picker.open_at(chip.mapToGlobal(QPoint(0, chip.height() + theme.px(4))))

    def open_file(self) -> None:
        """Let the person pick a model file."""
        folder = self._services.settings["last_folder"]
        dialog = QFileDialog(self._window, tr("Open a model or a chat"), folder)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setNameFilter(tr("Models and chats (*.gguf *{suffix})", suffix=SUFFIX))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(self._on_file_selected)
        dialog.open()

    def _on_file_selected(self, name: str) -> None:
        self._services.settings["last_folder"] = str(Path(name).parent)
        self.take(Path(name))

    def load(self, path: Path) -> None:
        """Load a model in the background; the window goes on."""
        settings = self._services.settings
        options = {key: settings[key] for key in ("n_ctx", "n_batch", "n_ubatch")}
        for key in ("n_threads", "n_threads_batch"):
            if settings[key]:
                options[key] = settings[key]
        self._services.engine.load(Path(path), **options)

    def take(self, path: Path) -> None:
        """Open a file: a model, a saved chat, or the downloaded package of the starter model."""
        if path.suffix.lower() == PACKAGE:
            self.starter.install(path)
        elif path.suffix.lower() == SUFFIX:
            self._services.chat_files.open(path)
        else:
            self.load(path)

    def reload(self) -> None:
        """Load the present model again, with the settings as they are now."""
        if self._services.engine.path is not None:
            self.load(self._services.engine.path)

    def rescan(self) -> None:
        """Look for models on this machine."""
        self._services.library.rescan(self._services.settings["model_folders"])
        self._show_library()

    def _on_starter_progressed(self, done: float, words: str) -> None:
        for pane in self._panes.all():
            pane.welcome.show_progress(done, words)

    def _on_starter_arrived(self, path: Path) -> None:
        for pane in self._panes.all():
            pane.welcome.show_progress(None)
        self.load(path)
        self.rescan()
        self._panes.current.composer.edit.setFocus()

    def _on_starter_failed(self, sentence: str) -> None:
        for pane in self._panes.all():
            pane.welcome.show_progress(None, sentence)
        self._guard.say(sentence)

    # ------------------------------------------------------------ what is shown

    def show_engine(self) -> None:
        """Show the state of the engine everywhere it is told."""
        engine = self._services.engine
        if engine.state == "ready":
            self._remember(engine.path)
        self.panel.show_engine(engine)
        facts = getattr(engine.client, "info", None) if engine.state == "ready" else None
        self.panel.show_facts(fact_rows(engine.path, facts))
        self._show_state()

    def _remember(self, path: Path | None) -> None:
        """Load this model at the next start: it could be loaded."""
        if self._services.settings["last_model"] != str(path):
            self._services.settings["last_model"] = str(path)
            self._guard.attempt(self._services.settings.save)

    def show_machine(self) -> None:
        """Show device and memory as they are now."""
        self._status.set_machine(device_line(self._level), memory_line())

    def _show_library(self) -> None:
        library, engine = self._services.library, self._services.engine
        for pane in self._panes.all():
            pane.welcome.set_models(library.models, library.is_scanning)
        loaded = engine.path if engine.state == "ready" else None
        self.picker.set_models(library.models, library.is_scanning, loaded)

    def _show_state(self) -> None:
        engine, running = self._services.engine, self._services.replies.running
        state = "busy" if engine.state == "ready" and running else engine.state
        words = {
            "empty": tr("No model"),
            "loading": engine.stage or tr("Opening {name}", name=engine.name),
            "ready": tr("Ready · {name}", name=engine.name),
            "failed": tr("The model could not be loaded"),
            "busy": busy_words([reply.phase() for reply in running.values()]),
        }
        self._status.set_state(state, words[state])

    def _show_progress(self) -> None:
        engine = self._services.engine
        self._status.set_progress(engine.done)
        self.panel.show_progress(engine.stage, engine.done)
        self._show_state()

    def _on_measured(self, chat: int, _message: int, n_tokens: int, rate: float) -> None:
        running = self._services.replies.running
        if n_tokens > 1 and rate > 0 and chat == max(running, default=chat):
            self._status.add_rate(max(rate, self._services.replies.rate()))


def busy_words(phases: list[str]) -> str:
    """Return what the engine does in words, as in “Writing 2 answers, reading 1, 1 in line”."""
    n_writing, n_reading = phases.count("writing"), phases.count("reading")
    parts = []
    if n_writing:
        many = tr("writing {n} answers", n=count(n_writing))
        parts.append(many if n_writing > 1 else tr("writing"))
    if n_reading:
        many = tr("reading {n} prompts", n=count(n_reading))
        parts.append(many if n_reading > 1 else tr("reading"))
    if len(phases) > n_writing + n_reading:
        parts.append(tr("{n} waiting", n=count(len(phases) - n_writing - n_reading)))
    line = ", ".join(parts)
    return line[:1].upper() + line[1:]


def dropped_file(event: Any) -> Path | None:
    """Return the file that is being dropped on the window if it can be opened, else None."""
    for url in event.mimeData().urls():
        path = Path(url.toLocalFile())
        if url.isLocalFile() and path.suffix.lower() in (".gguf", SUFFIX, PACKAGE):
            return path
    return None
