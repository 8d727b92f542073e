"""The main window: sidebar, panes, inspector and status line in their places, keys and menu."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QPoint, Qt, QTimer, QUrl, Signal
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
from PySide6.QtWidgets import QMainWindow, QMenu, QMessageBox, QVBoxLayout, QWidget

from app.services.everything import Services
from app.services.keeping import saving_words
from app.services.machine import device_line
from app.services.memories import BLINK_MS, LEAVE_S
from app.strings import tr
from app.ui.actions import ACTIONS
from app.ui.chat_control import ChatControl
from app.ui.columns import Columns, packed, unpacked
from app.ui.compare import send_to_all
from app.ui.guard import Guard
from app.ui.highlight import warm_up
from app.ui.icons import program_icon
from app.ui.model_control import ModelControl, dropped_file
from app.ui.pages.chat import ChatPane
from app.ui.panes import Panes
from app.ui.sampling_control import SamplingControl
from app.ui.slots_control import SlotsControl
from app.ui.theme import theme
from app.ui.widgets.inspector import Inspector
from app.ui.widgets.sidebar import Sidebar
from app.ui.widgets.status import StatusLine
from app.ui.widgets.toast import Toast

_MENU = (
    ("model.open", "model.choose"),
    ("pane.split", "pane.close", "pane.send_all"),
    ("window.sidebar", "window.inspector", "window.appearance"),
    ("window.larger", "window.smaller", "window.normal"),
    ("window.settings", "window.keys", "window.folder", "window.about"),
    ("window.quit",),
)


class MainWindow(QMainWindow):
    """Owns the panes and everything around them; the services outlive it.

    Signals:
        closed(): the window is about to go; the program ends.
    """

    closed = Signal()

    def __init__(self, services: Services) -> None:
        super().__init__()
        self.services = services
        self.setWindowTitle("Inglenook")
        self.setWindowIcon(program_icon())
        self.setAcceptDrops(True)
        self.setMinimumSize(560, 420)  # at any zoom: it must fit on the screen
        self._may_close = False
        self._is_kept = False
        self._saving = ""  # what is being said of it
        self.guard = Guard(self)
        self.sidebar = Sidebar(self)
        self.panes = Panes(lambda parent: ChatPane(services, self.guard, parent), self)
        self.inspector = Inspector(self)
        self.columns = Columns(services.settings, self.sidebar, self.panes, self.inspector, self)
        self.status = StatusLine(self)
        self.toast = Toast(lambda: self.pane.composer, self)
        self.chats = ChatControl(services, self.sidebar, self.panes, self.guard, self)
        self.sampling = SamplingControl(services, self.inspector, self.panes, self.guard, self)
        self.slots = SlotsControl(services, self.inspector, self.guard, self)
        self.models = ModelControl(services, self.panes, self.status, self.guard, self)
        self.inspector.set_page("model", tr("Model"), self.models.panel)
        self._memory = QTimer(self)
        self._memory.setInterval(2000)
        self._arrange()
        self._connect()
        self._acts = self._all_acts()
        self._bind_keys()
        self._restore_state()
        self.chats.refresh()

    @property
    def pane(self) -> ChatPane:
        """Return the pane that has the attention."""
        return self.panes.current

    def _arrange(self) -> None:
        center = QWidget(self)
        box = QVBoxLayout(center)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self.columns, 1)
        box.addWidget(self.status)
        self.setCentralWidget(center)

    def _connect(self) -> None:
        services = self.services
        self.guard.said.connect(self.say)
        self.panes.made.connect(self._adopt)
        self.panes.said.connect(self.guard.say)
        self.panes.current_changed.connect(lambda _: self.toast.place())
        self.inspector.shown.connect(lambda _: self.slots.refresh())
        self.slots.chosen.connect(self.chats.open)
        self._adopt(self.pane)
        self.sidebar.menu_wanted.connect(self._open_menu)
        self.models.setting_changed.connect(self.change_setting)
        services.replies.trouble.connect(self.say)
        services.memories.said.connect(self.say)
        services.memories.saving.connect(self._show_saving)
        services.jobs.failed.connect(lambda _: self.say(tr("Something unexpected happened.")))
        self._memory.timeout.connect(self.models.show_machine)
        theme.changed.connect(self.toast.place)

    def _adopt(self, pane: ChatPane) -> None:
        """Let a pane reach the window, and look as the settings want it."""
        settings = self.services.settings
        pane.link_wanted.connect(self._ask_about_link)
        pane.header.sidebar.clicked.connect(self.columns.toggle_sidebar)
        pane.header.inspector.clicked.connect(self.columns.toggle_inspector)
        pane.set_reading_width(settings["reading_width"])
        pane.composer.edit.sends_with_enter = settings["send_key"] == "enter"

    def begin(self) -> None:
        """Do what can wait until the window is on the screen: panels, models, memory."""
        self.sampling.begin()
        self.models.begin()
        self.services.jobs.run(warm_up, lambda _: None)
        self._memory.start()
        self.chats.empty_trash()
        self.pane.composer.edit.setFocus()

    # ------------------------------------------------------------ actions

    def _all_acts(self) -> dict[str, Callable[[], Any]]:
        """Return what each action of the table does in this window."""
        chats, models, panes = self.chats, self.models, self.panes
        return self._message_acts() | {
            "chat.start": chats.start,
            "chat.search": self._search,
            "chat.rename": self._rename,
            "chat.pin": lambda: chats.act("chat.pin", self.pane.conversation_id),
            "chat.delete": lambda: chats.act("chat.delete", self.pane.conversation_id),
            "chat.previous": lambda: chats.open_neighbour(-1),
            "chat.next": lambda: chats.open_neighbour(1),
            "message.stop": self._escape,
            "pane.split": panes.split,
            "pane.close": panes.close_pane,
            "pane.send_all": lambda: send_to_all(panes, self.guard),
            "pane.next": lambda: panes.step(1),
            "pane.previous": lambda: panes.step(-1),
            "model.choose": models.choose,
            "model.open": models.open_file,
            "model.unload": self.services.engine.unload,
            "window.sidebar": self.columns.toggle_sidebar,
            "window.inspector": self.columns.toggle_inspector,
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

    def _message_acts(self) -> dict[str, Callable[[], Any]]:
        """Return what each action does that means the pane with the attention."""
        return {
            "message.regenerate": lambda: self.pane.acts.act_on_last("message.regenerate"),
            "message.continue": lambda: self.pane.acts.act_on_last("message.continue"),
            "message.previous_version": lambda: self.pane.acts.step_version(-1),
            "message.next_version": lambda: self.pane.acts.step_version(1),
            "message.copy_selection": lambda: self.pane.acts.copy_selection(),
            "message.copy_answer": lambda: self.pane.acts.act_on_last("message.copy"),
            "message.copy_code": lambda: self.pane.acts.copy_last_code(),
            "message.edit_question": lambda: self.pane.acts.edit_question(),
            "page.find": lambda: self.pane.find_bar.open_bar(),
            "page.find_next": lambda: self.pane.find_bar.step(1),
            "page.find_previous": lambda: self.pane.find_bar.step(-1),
            "page.newest": lambda: self.pane.transcript.go_to_newest(),
            "composer.focus": lambda: self.pane.composer.edit.setFocus(),
        }

    def act(self, key: str) -> None:
        """Do an action of the table."""
        self._acts[key]()

    def _bind_keys(self) -> None:
        for key in self._acts:
            for sequence in ACTIONS[key].keys:
                shortcut = QShortcut(QKeySequence(sequence), self)
                shortcut.activated.connect(self._acts[key])

    def _open_menu(self) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for group in _MENU:
            for key in group:
                entry = menu.addAction(tr(ACTIONS[key].label), self._acts[key])
                if ACTIONS[key].keys:
                    entry.setShortcut(QKeySequence(ACTIONS[key].keys[0]))
                    entry.setShortcutVisibleInContextMenu(True)
            menu.addSeparator()
        corner = self.sidebar.menu.mapToGlobal(QPoint(0, 0))
        menu.popup(QPoint(corner.x(), corner.y() - menu.sizeHint().height()))

    def _rename(self) -> None:
        """F2: in the list the marked chat, elsewhere the one on show."""
        marked = self.sidebar.marked() if self.sidebar.list.hasFocus() else 0
        if marked:
            self.sidebar.edit_title(marked)
        elif self.pane.conversation_id:
            self.pane.header.rename()

    def _search(self) -> None:
        if self.sidebar.isHidden():
            self.columns.toggle_sidebar()
        self.sidebar.focus_search()

    def _escape(self) -> None:
        """Esc: leave search, title or editing first, then stop, then go back to writing."""
        header = self.pane.header
        if self.sidebar.is_searching():
            self.sidebar.search.clear()
        elif header.is_renaming():
            header.end_renaming()
            self.pane.composer.edit.setFocus()
        elif self.pane.find_bar.isVisible():
            self.pane.find_bar.leave()
        elif self.pane.banner.isVisible():
            self.pane.banner.cancelled.emit()
        elif self.pane.is_running():
            self.pane.stop()
        else:
            self.pane.composer.edit.setFocus()

    def say(self, sentence: str, undo: Callable[[], None] | None = None, time_s: float = 6) -> None:
        """Show a short line at the bottom, with a way back if there is one; 0 s: until read."""
        self.toast.say(sentence, undo, time_s)

    # ------------------------------------------------------------ preferences

    def set_zoom(self, zoom: float) -> None:
        """Scale everything and remember it."""
        theme.set_zoom(zoom)
        self.services.settings["zoom"] = round(theme.zoom * 100)
        self.guard.attempt(self.services.settings.save)

    def next_appearance(self) -> None:
        """Go from the system's appearance to light, to dark, and around."""
        order = ["system", "light", "dark"]
        self.change_setting("theme", order[(order.index(theme.choice) + 1) % 3])
        names = {"system": tr("as the system"), "light": tr("light"), "dark": tr("dark")}
        self.say(tr("Appearance: {name}", name=names[theme.choice]))

    def change_setting(self, key: str, value: Any) -> None:
        """Take over a setting: store it, and let it hold at once where it can."""
        settings = self.services.settings
        self.guard.attempt(lambda: settings.__setitem__(key, value))
        if key == "theme":
            theme.choose(value)
        elif key == "zoom":
            theme.set_zoom(value / 100)
        elif key == "reading_width":
            for pane in self.panes.all():
                pane.set_reading_width(value)
        elif key == "send_key":
            for pane in self.panes.all():
                pane.composer.edit.sends_with_enter = value == "enter"
        elif key == "keep_reasoning":
            self.services.chats.keeps_reasoning = value
        elif key == "code_font":
            theme.set_code_face(value)
        elif key == "motion":
            theme.animated = value
        elif key == "model_folders":
            self.models.rescan()
        elif key in ("keep_memory", "memory_gb"):
            self.services.memories.follow_settings()
        self.guard.attempt(settings.save)

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

        AboutDialog(device_line(), self).show()

    def open_folder(self) -> None:
        """Open the folder with the conversations in the system's file manager."""
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self.services.paths.stored)))

    def _ask_about_link(self, address: str) -> None:
        from app.ui.dialogs.link import LinkDialog

        LinkDialog(address, self).open()

    # ------------------------------------------------------------ for the command line

    def load_model(self, path: Path) -> None:
        """Load a model in the background."""
        self.models.load(path)

    def open_file(self, path: Path) -> None:
        """Open a model or a saved chat in the background."""
        self.models.take(path)

    def open_conversation(self, conversation_id: int) -> None:
        """Show a conversation."""
        self.chats.open(conversation_id)

    # ------------------------------------------------------------ Qt

    def _restore_state(self) -> None:
        settings = self.services.settings
        self.resize(theme.px(1440), theme.px(900))
        if settings["window"]:
            self.restoreGeometry(unpacked(settings["window"]))
        self.columns.restore()
        self.panes.restore(settings["panes"])
        self.services.chats.keeps_reasoning = settings["keep_reasoning"]
        theme.animated = settings["motion"]
        if settings["code_font"]:
            theme.set_code_face(settings["code_font"])

    def _keep_state(self) -> None:
        settings = self.services.settings
        settings["window"] = packed(self.saveGeometry())
        self.columns.keep()
        for pane in self.panes.all():
            pane.composer.flush_draft()
            made = pane.keep_fresh_draft()
            if made and pane is self.pane:
                settings["last_conversation"] = made
        settings["panes"] = self.panes.state()
        self.guard.attempt(settings.save)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dropped_file(event) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        path = dropped_file(event)
        if path is not None:
            event.acceptProposedAction()
            self.models.take(path)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.columns.place()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.toast.place()

    def closeEvent(self, event: QCloseEvent) -> None:
        if self.services.replies.running and not self._may_close:
            event.ignore()
            self._ask_before_closing()
            return
        self.services.replies.stop_all()
        if not self._is_kept and self.services.memories.hurry():
            event.ignore()
            self._wait_for_memories()
            return
        self._keep_state()
        self._memory.stop()
        self.slots.stop()
        self.models.starter.cancel()
        self.closed.emit()
        event.accept()

    def _wait_for_memories(self) -> None:
        """Close when what the engine remembers is on the disk, or after a few seconds."""
        if not self.isEnabled():
            return
        self.setEnabled(False)
        memories = self.services.memories
        QTimer.singleShot(BLINK_MS, self, self._say_saving)
        QTimer.singleShot(round(1000 * LEAVE_S), self, self._close_kept)
        memories.idle.connect(self._close_kept)

    def _show_saving(self, words: str) -> None:
        """Show what is said while something is being saved, as long as that lasts."""
        if words:
            self.say(words)
        else:
            self.toast.end(self._saving)
        self._saving = words

    def _say_saving(self) -> None:
        if self.services.memories.n_unsaved() and not self._is_kept:
            self.say(saving_words(self.services.memories.n_unsaved()))

    def _close_kept(self) -> None:
        if not self._is_kept:
            self._is_kept = True
            self.close()

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
