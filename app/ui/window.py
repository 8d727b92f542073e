"""The main window: sidebar, panes, inspector, status line, and the actions that tie them."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QByteArray, QEvent, QPoint, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QDesktopServices,
    QDragEnterEvent,
    QDropEvent,
    QKeySequence,
    QResizeEvent,
    QShortcut,
    QShowEvent,
)
from PySide6.QtWidgets import (
    QFileDialog,
    QInputDialog,
    QMainWindow,
    QMenu,
    QMessageBox,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from app.errors import AppError
from app.services.everything import Services
from app.services.machine import device_line, memory_line
from app.services.sampling import sampler_rows
from app.services.starter import Starter
from app.strings import count, tr
from app.ui.actions import ACTIONS
from app.ui.icons import program_icon
from app.ui.pages.chat import ChatPane
from app.ui.theme import theme
from app.ui.widgets.chat_list import chat_rows, hit_rows
from app.ui.widgets.inspector import Inspector
from app.ui.widgets.model_panel import ModelPanel, fact_rows
from app.ui.widgets.model_picker import ModelPicker
from app.ui.widgets.sampling_panel import SamplingPanel
from app.ui.widgets.sidebar import Sidebar
from app.ui.widgets.status import StatusLine
from app.ui.widgets.toast import Toast

_OVERLAY_BELOW = 800  # window width in pixels under which the inspector lies over the pane


class MainWindow(QMainWindow):
    """Owns the panes and everything around them; the services outlive it.

    Signals:
        closed(): the window is about to go; the program ends.
    """

    closed = Signal()

    def __init__(self, services: Services) -> None:
        super().__init__()
        self.services = services
        self.starter = Starter(services.jobs, services.paths)
        self.setWindowTitle("Inglenook")
        self.setWindowIcon(program_icon())
        self.setAcceptDrops(True)
        self.setMinimumSize(theme.px(560), theme.px(420))
        self.sidebar = Sidebar(self)
        self.pane = ChatPane(services, self)
        self.panes = QSplitter(Qt.Orientation.Horizontal, self)
        self.panes.addWidget(self.pane)
        self.inspector = Inspector(self)
        self.sampling = SamplingPanel(())
        self.model_panel = ModelPanel(services.settings)
        self.status = StatusLine(self)
        self.toast = Toast(self.pane.composer, self)
        self.picker = ModelPicker(self)
        self._slots: dict[int, int] = {}
        self._arrange()
        self._connect()
        self._bind_keys()
        self._restore_state()
        self.refresh_list()
        self._show_engine()
        self._memory = QTimer(self)
        self._memory.setInterval(2000)
        self._memory.timeout.connect(self._show_machine)
        self._memory.start()

    def _arrange(self) -> None:
        self.splitter = QSplitter(Qt.Orientation.Horizontal, self)
        self.splitter.setChildrenCollapsible(False)
        self.splitter.setHandleWidth(1)
        self.splitter.setAccessibleName(tr("Width of the columns"))
        for widget in (self.sidebar, self.panes, self.inspector):
            self.splitter.addWidget(widget)
        self.splitter.setStretchFactor(1, 1)
        self.sidebar.setMinimumWidth(theme.px(180))
        self.inspector.setMinimumWidth(theme.px(270))
        center = QWidget(self)
        box = QVBoxLayout(center)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self.splitter, 1)
        box.addWidget(self.status)
        self.setCentralWidget(center)
        self.inspector.set_page("sampling", tr("Sampling"), self.sampling)
        self.inspector.set_page("model", tr("Model"), self.model_panel)

    def _connect(self) -> None:
        services = self.services
        self.sidebar.chosen.connect(self.open_conversation)
        self.sidebar.started.connect(self.start_chat)
        self.sidebar.searched.connect(lambda _: self.refresh_list())
        self.sidebar.renamed.connect(self._rename)
        self.sidebar.action.connect(self._act_on_chat)
        self.sidebar.menu_wanted.connect(self._open_menu)
        self.pane.opened.connect(self._on_opened)
        self.pane.said.connect(self.say)
        self.pane.link_wanted.connect(self._ask_about_link)
        self.pane.model_wanted.connect(self.choose_model)
        self.pane.header.sidebar.clicked.connect(self.toggle_sidebar)
        self.pane.header.inspector.clicked.connect(self.toggle_inspector)
        self.pane.welcome.chosen.connect(self.load_model)
        self.pane.welcome.file_wanted.connect(self.open_file)
        self.pane.welcome.starter_wanted.connect(self.starter.fetch)
        self.model_panel.choose_wanted.connect(self.choose_model)
        self.model_panel.unload_wanted.connect(services.engine.unload)
        self.model_panel.reload_wanted.connect(self.reload_model)
        self.model_panel.changed.connect(self.change_setting)
        self.picker.chosen.connect(self.load_model)
        self.picker.file_wanted.connect(self.open_file)
        self.picker.rescan_wanted.connect(self.rescan)
        self.starter.progressed.connect(self.pane.welcome.show_progress)
        self.starter.arrived.connect(self._on_starter_arrived)
        self.starter.failed.connect(self._on_starter_failed)
        services.chats.listed.connect(self.refresh_list)
        services.replies.busy_changed.connect(self._on_busy_changed)
        services.replies.settled.connect(self._on_settled)
        services.replies.measured.connect(self._on_measured)
        services.replies.trouble.connect(lambda sentence: self.say(sentence, None))
        services.jobs.failed.connect(lambda _: self.say(tr("Something unexpected happened."), None))
        services.engine.changed.connect(self._show_engine)
        services.engine.progressed.connect(self._show_progress)
        services.library.changed.connect(self._show_library)
        theme.changed.connect(self._restyle)

    def _bind_keys(self) -> None:
        acts = self._acts()
        for key, action in ACTIONS.items():
            for sequence in action.keys if key in acts else ():
                shortcut = QShortcut(QKeySequence(sequence), self)
                shortcut.activated.connect(acts[key])

    def _acts(self) -> dict[str, Callable[[], Any]]:
        """Return what each action of the table does in this window."""
        pane = self.pane
        return {
            "chat.start": self.start_chat,
            "chat.search": self._search,
            "chat.rename": pane.header.rename,
            "chat.pin": lambda: self._act_on_chat("chat.pin", pane.conversation_id),
            "chat.delete": lambda: self._act_on_chat("chat.delete", pane.conversation_id),
            "chat.previous": lambda: self._open_neighbour(-1),
            "chat.next": lambda: self._open_neighbour(1),
            "message.stop": self._escape,
            "message.regenerate": lambda: pane.act_on_last("message.regenerate"),
            "message.continue": lambda: pane.act_on_last("message.continue"),
            "message.previous_version": lambda: pane.step_version(-1),
            "message.next_version": lambda: pane.step_version(1),
            "message.copy_answer": lambda: pane.act_on_last("message.copy"),
            "message.copy_code": pane.copy_last_code,
            "message.edit_question": pane.edit_question,
            "page.newest": pane.transcript.go_to_newest,
            "composer.focus": pane.composer.edit.setFocus,
            "model.choose": self.choose_model,
            "model.open": self.open_file,
            "model.unload": self.services.engine.unload,
            "window.sidebar": self.toggle_sidebar,
            "window.inspector": self.toggle_inspector,
            "window.larger": lambda: self.set_zoom(theme.zoom + 0.1),
            "window.smaller": lambda: self.set_zoom(theme.zoom - 0.1),
            "window.normal": lambda: self.set_zoom(1.0),
            "window.appearance": self.next_appearance,
            "window.settings": self.open_settings,
            "window.keys": self.open_keys,
            "window.folder": self.open_folder,
            "window.about": self.open_about,
            "window.quit": self.close,
        }

    # ------------------------------------------------------------ start

    def begin(self) -> None:
        """Do what can wait until the window is on the screen: panels, models, the last chat."""
        self.fill_sampling()
        self.starter.read_catalogue()
        self.pane.welcome.show_starter(self.starter.model)
        self.rescan()
        self._show_machine()
        self.pane.composer.edit.setFocus()

    def fill_sampling(self) -> None:
        """Build the sampling cards from the engine's table."""
        self.sampling = SamplingPanel(sampler_rows())
        self.sampling.set_presets(self.services.presets.all())
        self.sampling.show_values(self.pane.params.get("sampling", {}))
        self.sampling.changed.connect(self._on_sampling_changed)
        self.sampling.preset_chosen.connect(self._on_preset_chosen)
        self.sampling.save_wanted.connect(self._save_preset)
        self.inspector.set_page("sampling", tr("Sampling"), self.sampling)

    def rescan(self) -> None:
        """Look for models on this machine."""
        self.services.library.rescan(self.services.settings["model_folders"])
        self._show_library()

    # ------------------------------------------------------------ chats

    def start_chat(self) -> None:
        """Show an empty page that becomes a conversation with its first message."""
        self.pane.open(None)
        self.pane.composer.edit.setFocus()

    def open_conversation(self, conversation_id: int, message_id: int | None = None) -> None:
        """Show a conversation, at a message if given."""
        if conversation_id == self.pane.conversation_id and message_id is None:
            self.pane.composer.edit.setFocus()
            return
        try:
            self.pane.open(conversation_id, message_id)
        except (AppError, LookupError) as error:
            self.say(str(error), None)
            return
        if message_id is None:
            self.pane.composer.edit.setFocus()

    def refresh_list(self) -> None:
        """Show the conversations, or what a search found."""
        try:
            if self.sidebar.is_searching():
                hits = self.services.database.search(self.sidebar.search.text().strip())
                self.sidebar.set_rows(hit_rows(hits))
            else:
                conversations = self.services.database.conversations()
                self.sidebar.set_rows(chat_rows(conversations, self._lamp))
        except AppError as error:
            self.say(str(error), None)

    def _lamp(self, conversation: Any) -> tuple[str, str]:
        """Return the lamp of a conversation and what it means in words."""
        if self.services.replies.is_running(conversation.id):
            return "running", tr("answering")
        if conversation.id in self._slots.values():
            return "ready", tr("ready: its memory is loaded, it answers at once")
        return "cold", tr("must be read again before it answers")

    def _open_neighbour(self, step: int) -> None:
        conversation_id = self.sidebar.neighbour(step)
        if conversation_id:
            self.open_conversation(conversation_id)

    def _search(self) -> None:
        if self.sidebar.isHidden():
            self.toggle_sidebar()
        self.sidebar.focus_search()

    def _rename(self, conversation_id: int, title: str) -> None:
        self._try(lambda: self.services.chats.change(conversation_id, title=title))
        if conversation_id == self.pane.conversation_id:
            self.pane.header.set_title(title)

    def _act_on_chat(self, key: str, conversation_id: int) -> None:
        if not conversation_id:
            return
        if key == "chat.rename":
            self.sidebar.edit_title(conversation_id)
        elif key == "chat.pin":
            pinned = self.services.database.conversation(conversation_id).pinned
            self._try(lambda: self.services.chats.change(conversation_id, pinned=not pinned))
        elif key == "chat.delete":
            self._delete_chat(conversation_id)

    def _delete_chat(self, conversation_id: int) -> None:
        title = self.services.database.conversation(conversation_id).title
        self._try(lambda: self.services.chats.trash(conversation_id))
        if conversation_id == self.pane.conversation_id:
            self.start_chat()

        def undo() -> None:
            self._try(lambda: self.services.chats.restore(conversation_id))
            self.open_conversation(conversation_id)

        self.say(tr("“{title}” is in the trash.", title=title or tr("New chat")), undo)

    def _on_opened(self, conversation_id: int) -> None:
        self.sidebar.mark(conversation_id)
        self.services.settings["last_conversation"] = conversation_id
        self.sampling.show_values(self.pane.params.get("sampling", {}))

    # ------------------------------------------------------------ sampling

    def _on_sampling_changed(self, values: dict[str, Any]) -> None:
        try:
            self.pane.change_sampling(values)
        except Exception as error:
            self._unexpected(error)

    def _on_preset_chosen(self, preset: Any) -> None:
        everything = {
            row.parameter.key: row.parameter.default
            for card in self.sampling.cards
            for row in card.rows
        }
        values = {**everything, **preset.sampling}
        self.sampling.show_values(values)
        self.pane.change_sampling(values, replace=True)
        self.services.settings["preset"] = preset.id
        self._save_settings()

    def _save_preset(self) -> None:
        dialog = QInputDialog(self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setWindowTitle(tr("Save preset"))
        dialog.setLabelText(tr("Name of the preset"))
        dialog.textValueSelected.connect(self._store_preset)
        dialog.open()

    def _store_preset(self, name: str) -> None:
        saved = self._try(lambda: self.services.presets.save(name, dict(self.sampling.values)))
        if saved is not None:
            self.sampling.set_presets(self.services.presets.all())
            self.say(tr("“{name}” is saved.", name=saved.name), None)

    # ------------------------------------------------------------ model

    def choose_model(self) -> None:
        """Open the chooser under the chip."""
        chip = self.pane.header.chip
        self._show_library()
        self.picker.open_at(chip.mapToGlobal(QPoint(0, chip.height() + theme.px(4))))

    def open_file(self) -> None:
        """Let the person pick a model file."""
        dialog = QFileDialog(self, tr("Open a model"), self.services.settings["last_folder"])
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setNameFilter(tr("Models (*.gguf)"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(self._on_file_selected)
        dialog.open()

    def _on_file_selected(self, name: str) -> None:
        self.services.settings["last_folder"] = str(Path(name).parent)
        self.load_model(Path(name))

    def load_model(self, path: Path) -> None:
        """Load a model in the background; the window goes on."""
        settings = self.services.settings
        options = {"n_ctx": settings["n_ctx"], "n_batch": settings["n_batch"]}
        options["n_ubatch"] = settings["n_ubatch"]
        for key in ("n_threads", "n_threads_batch"):
            if settings[key]:
                options[key] = settings[key]
        settings["last_model"] = str(path)
        self._save_settings()
        self.services.engine.load(Path(path), **options)

    def reload_model(self) -> None:
        """Load the present model again, with the settings as they are now."""
        if self.services.engine.path is not None:
            self.load_model(self.services.engine.path)

    def _on_starter_arrived(self, path: Path) -> None:
        self.pane.welcome.show_progress(None)
        self.load_model(path)
        self.rescan()

    def _on_starter_failed(self, sentence: str) -> None:
        self.pane.welcome.show_progress(None, sentence)
        self.say(sentence, None)

    def _show_library(self) -> None:
        library = self.services.library
        self.pane.welcome.set_models(library.models, library.is_scanning)
        self.picker.set_models(library.models, library.is_scanning)

    def _show_engine(self) -> None:
        engine, replies = self.services.engine, self.services.replies
        self._slots.clear()
        self.model_panel.show_engine(engine)
        facts = getattr(engine.client, "info", None) if engine.state == "ready" else None
        self.model_panel.show_facts(fact_rows(engine.path, facts))
        if engine.state == "failed":
            self.inspector.show_tab("model")
        self._show_state(len(replies.running))

    def _show_state(self, n_running: int) -> None:
        engine = self.services.engine
        words = {
            "empty": tr("No model"),
            "loading": engine.stage or tr("Opening {name}", name=engine.name),
            "ready": tr("Ready · {name}", name=engine.name),
            "failed": tr("The model could not be loaded"),
        }
        state = "busy" if engine.state == "ready" and n_running else engine.state
        sentence = words[engine.state]
        if state == "busy":
            sentence = (
                tr("Generating")
                if n_running == 1
                else (tr("Generating {n} answers", n=count(n_running)))
            )
        self.status.set_state(state, sentence)

    def _show_progress(self) -> None:
        engine = self.services.engine
        self.status.set_progress(engine.done)
        self.model_panel.show_progress(engine.stage, engine.done)
        self._show_state(len(self.services.replies.running))

    def _show_machine(self) -> None:
        self.status.set_machine(device_line(), memory_line())

    # ------------------------------------------------------------ answers

    def _on_busy_changed(self) -> None:
        self._show_state(len(self.services.replies.running))
        self.refresh_list()

    def _on_measured(self, _conversation: int, _message: int, n_tokens: int, rate: float) -> None:
        if n_tokens > 1 and rate > 0:
            self.status.add_rate(rate)

    def _on_settled(self, conversation_id: int, message: Any) -> None:
        slot = message.record.get("id_slot")
        if slot is not None and slot >= 0:
            self._slots[slot] = conversation_id
            self.refresh_list()

    def _escape(self) -> None:
        """Esc: leave editing first, then stop the answer, then go back to writing."""
        if self.pane.banner.isVisible():
            self.pane.banner.cancelled.emit()
        elif self.pane.is_running():
            self.pane.stop()
        else:
            self.pane.composer.edit.setFocus()

    # ------------------------------------------------------------ window

    def say(self, sentence: str, undo: Callable[[], None] | None) -> None:
        """Show a short line at the bottom, with a way back if there is one."""
        self.toast.say(sentence, undo)

    def toggle_sidebar(self) -> None:
        """Show or hide the chats."""
        self.sidebar.setVisible(self.sidebar.isHidden())
        self.services.settings["sidebar_open"] = not self.sidebar.isHidden()

    def toggle_inspector(self) -> None:
        """Show or hide the inspector."""
        self.inspector.setVisible(self.inspector.isHidden())
        self.services.settings["inspector_open"] = not self.inspector.isHidden()
        self._fit_inspector()

    def _fit_inspector(self) -> None:
        """In a narrow window the inspector lies over the pane, else it stands beside it."""
        narrow = self.width() < theme.px(_OVERLAY_BELOW)
        overlaid = self.inspector.parentWidget() is self
        if narrow and not overlaid:
            self.inspector.setParent(self)
            self.inspector.hide()
        elif not narrow and overlaid:
            self.splitter.addWidget(self.inspector)
            self.inspector.setVisible(self.services.settings["inspector_open"])
        if narrow:
            width = theme.px(320)
            height = self.height() - self.status.height()
            self.inspector.setGeometry(self.width() - width, 0, width, height)
            self.inspector.raise_()
            self.inspector.setAutoFillBackground(True)
        self.inspector.setProperty("overlaid", narrow)

    def set_zoom(self, zoom: float) -> None:
        """Scale everything and remember it."""
        theme.set_zoom(zoom)
        self.services.settings["zoom"] = round(theme.zoom * 100)
        self._save_settings()

    def next_appearance(self) -> None:
        """Go from system to light to dark and around."""
        order = ["system", "light", "dark"]
        self.change_setting("theme", order[(order.index(theme.choice) + 1) % 3])
        self.say(tr("Appearance: {name}", name=tr(theme.choice)), None)

    def change_setting(self, key: str, value: Any) -> None:
        """Take over a setting: store it, and let it hold where it can at once."""
        self._try(lambda: self.services.settings.__setitem__(key, value))
        if key == "theme":
            theme.choose(value)
        elif key == "zoom":
            theme.set_zoom(value / 100)
        elif key == "reading_width":
            self.pane.set_reading_width(value)
        elif key == "send_key":
            self.pane.composer.edit.sends_with_enter = value == "enter"
        elif key == "model_folders":
            self.rescan()
        self._save_settings()

    def open_settings(self) -> None:
        """Open the settings beside the window."""
        from app.ui.dialogs.settings import SettingsDialog

        dialog = SettingsDialog(self.services.settings, self)
        dialog.changed.connect(self.change_setting)
        dialog.show()

    def open_keys(self) -> None:
        """Open the sheet of keys."""
        from app.ui.dialogs.keys import KeysDialog

        KeysDialog(self).show()

    def open_about(self) -> None:
        """Open the page about this program."""
        from app.ui.dialogs.about import AboutDialog

        AboutDialog(_version(), device_line(), self).show()

    def open_folder(self) -> None:
        """Open the folder with the conversations in the system's file manager."""
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self.services.paths.stored)))

    def _ask_about_link(self, address: str) -> None:
        from app.ui.dialogs.link import LinkDialog

        LinkDialog(address, self).open()

    def _open_menu(self) -> None:
        acts = self._acts()
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        groups = (
            ("model.open", "model.choose"),
            ("window.sidebar", "window.inspector", "window.appearance"),
            ("window.larger", "window.smaller", "window.normal"),
            ("window.settings", "window.keys", "window.folder", "window.about"),
            ("window.quit",),
        )
        for group in groups:
            for key in group:
                entry = menu.addAction(tr(ACTIONS[key].label), acts[key])
                if ACTIONS[key].keys:
                    entry.setShortcut(QKeySequence(ACTIONS[key].keys[0]))
                    entry.setShortcutVisibleInContextMenu(True)
            menu.addSeparator()
        corner = self.sidebar.menu
        point = corner.mapToGlobal(QPoint(0, 0))
        menu.popup(QPoint(point.x(), point.y() - menu.sizeHint().height()))

    def _restyle(self) -> None:
        if self.sampling.cards:
            self.fill_sampling()
        self.toast.place()

    def _try(self, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except AppError as error:
            self.say(str(error), None)
            return None

    def _save_settings(self) -> None:
        self._try(self.services.settings.save)

    def _unexpected(self, error: Exception) -> None:
        self.say(str(error), None)

    # ------------------------------------------------------------ Qt

    def _restore_state(self) -> None:
        settings = self.services.settings
        self.resize(theme.px(1440), theme.px(900))
        if settings["window"]:
            self.restoreGeometry(QByteArray(base64.b64decode(settings["window"])))
        if settings["splitters"]:
            self.splitter.restoreState(QByteArray(base64.b64decode(settings["splitters"])))
        self.sidebar.setVisible(settings["sidebar_open"])
        self.inspector.setVisible(settings["inspector_open"])
        self.pane.set_reading_width(settings["reading_width"])
        self.pane.composer.edit.sends_with_enter = settings["send_key"] == "enter"

    def _keep_state(self) -> None:
        settings = self.services.settings
        settings["window"] = base64.b64encode(self.saveGeometry().data()).decode()
        settings["splitters"] = base64.b64encode(self.splitter.saveState().data()).decode()
        self.pane.composer.flush_draft()
        self._save_settings()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if _dropped_model(event) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        path = _dropped_model(event)
        if path is not None:
            event.acceptProposedAction()
            self.load_model(path)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_inspector()
        self.toast.place()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self.services.settings["splitters"]:
            side, tabs = theme.px(256), theme.px(310)
            self.splitter.setSizes([side, max(200, self.width() - side - tabs), tabs])

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.ActivationChange and self.isActiveWindow():
            self._show_machine()

    def closeEvent(self, event: QCloseEvent) -> None:
        if self.services.replies.running and not getattr(self, "_may_close", False):
            event.ignore()
            self._ask_before_closing()
            return
        self._keep_state()
        self._memory.stop()
        self.starter.cancel()
        self.closed.emit()
        event.accept()

    def _ask_before_closing(self) -> None:
        box = QMessageBox(self)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.setWindowTitle("Inglenook")
        box.setText(tr("An answer is still being written."))
        box.setInformativeText(tr("What came so far is kept."))
        stop = box.addButton(tr("Stop and quit"), QMessageBox.ButtonRole.DestructiveRole)
        box.addButton(tr("Keep writing"), QMessageBox.ButtonRole.RejectRole)
        stop.clicked.connect(self._close_anyway)
        box.open()

    def _close_anyway(self) -> None:
        self._may_close = True
        QTimer.singleShot(0, self.close)


def _dropped_model(event: Any) -> Path | None:
    """Return the model file that is being dropped, or None."""
    for url in event.mimeData().urls():
        path = Path(url.toLocalFile())
        if url.isLocalFile() and path.suffix.lower() == ".gguf":
            return path
    return None


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("inglenook")
    except PackageNotFoundError:
        return tr("from source")
