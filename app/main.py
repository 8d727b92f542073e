"""Start and end of the program, in order.

Start: options → application and theme → folders, settings, lock → conversations (answers that a
crash cut off are marked) → the window is shown → engine, models and panels follow in the
background. End: answers are stopped and stored → scans end → what the engine remembers is kept →
the engine thread is joined → the database is closed → the lock is given back.
"""

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from app.errors import AppError
from app.paths import Paths, find_paths, resources_folder
from app.strings import tr

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

    from app.services.everything import Services
    from app.ui.window import MainWindow

PATIENCE_S = 20.0  # with a running instance that does not answer: it may be ending


def parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="inglenook", description="Talk with a model, here.")
    parser.add_argument("file", nargs="?", help="a model (.gguf) or a chat (.inglenook) to open")
    parser.add_argument("--data-dir", type=Path, help="keep everything in this folder")
    parser.add_argument("--model", type=Path, help="a model to load")
    parser.add_argument("--prompt", help="send this text when the model is ready")
    parser.add_argument("--screenshot", type=Path, help="save a picture of the window, then end")
    parser.add_argument("--quit-after", type=float, metavar="S", help="end after S seconds")
    parser.add_argument("--offscreen", action="store_true", help="use no display")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program until its window is closed; returns the exit code."""
    options = parse_options(sys.argv[1:] if arguments is None else arguments)
    if options.offscreen:
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    application = make_application()
    paths = find_paths(options.data_dir)
    try:
        paths.make()
    except AppError as error:
        return refuse(str(error))
    from app.services.one_instance import OneInstance

    instance = OneInstance(paths.state)
    is_first = instance.claim()
    wanted = str((options.file and Path(options.file).resolve()) or "")
    if not is_first and not options.offscreen and instance.hand_over(wanted):
        answer = instance.answer(PATIENCE_S)
        if answer == "taken":
            return 0
        if answer == "silent":
            return refuse(tr("Inglenook runs already but does not answer; end it and start again."))
    try:
        services = make_services(paths)
    except AppError as error:
        return refuse(str(error))
    window = open_window(application, services)
    instance.asked.connect(lambda file: _raise(window, file))
    instance.is_listening = window.isEnabled
    from app.services.errand import Errand

    errand = Errand(window, options)
    errand.start()
    code = application.exec()
    services.close()
    instance.close()
    return code


def make_application() -> "QApplication":
    """Return the application with its names and its look; the appearance follows the system."""
    from PySide6.QtCore import Qt
    from PySide6.QtGui import QGuiApplication
    from PySide6.QtWidgets import QApplication

    QGuiApplication.setHighDpiScaleFactorRoundingPolicy(
        Qt.HighDpiScaleFactorRoundingPolicy.PassThrough
    )
    running = QApplication.instance()
    application = running if isinstance(running, QApplication) else QApplication(["inglenook"])
    application.setApplicationName("Inglenook")
    application.setOrganizationName("Inglenook")
    application.setDesktopFileName("inglenook")
    return application


def make_services(paths: Paths, make_client: Callable[..., Any] | None = None) -> "Services":
    """Open everything below the window; raises AppError when the folder refuses."""
    from app.chats.database import ChatDatabase
    from app.presets import Presets
    from app.services.chat_files import ChatFiles
    from app.services.chats import Chats
    from app.services.engine_service import EngineService
    from app.services.everything import Services
    from app.services.jobs import Jobs
    from app.services.library import Library
    from app.services.memories import Memories
    from app.services.reply import Replies
    from app.services.slots import Slots
    from app.settings import Settings

    settings = Settings.load(paths.settings)
    database = ChatDatabase(paths.chats)
    n_interrupted = database.recover()
    jobs = Jobs()
    engine = EngineService(jobs, make_client)
    replies = Replies(database, engine)
    chats = Chats(database, replies)
    memories = Memories(jobs, engine, replies, chats, settings, paths.snapshots)
    return Services(
        paths=paths,
        settings=settings,
        database=database,
        jobs=jobs,
        engine=engine,
        replies=replies,
        chats=chats,
        library=Library(jobs, paths.models),
        presets=Presets(resources_folder() / "presets", paths.presets),
        slots=Slots(jobs, engine, replies, memories, chats),
        memories=memories,
        chat_files=ChatFiles(jobs, engine, chats, memories),
        n_interrupted=n_interrupted,
    )


def open_window(application: "QApplication", services: "Services") -> "MainWindow":
    """Show the window with the person's look and the last conversation."""
    from app.ui.theme import theme
    from app.ui.window import MainWindow

    settings = services.settings
    theme.start(application, settings["theme"], settings["zoom"] / 100)
    window = MainWindow(services)
    window.closed.connect(application.quit)
    last = conversation_to_open(services)
    if last:
        window.open_conversation(last)
    window.show()
    report_errors(services.paths.logs, window)
    notices = [notice for notice in (services.database.notice, settings.notice) if notice]
    if notices:
        window.say(" ".join(notices), time_s=0)
    return window


def conversation_to_open(services: "Services") -> int:
    """Return the conversation on show at the end of the last run, 0 for none.

    After a run that did not end well it is the one written last.
    """
    conversations = services.database.conversations()
    if services.n_interrupted and conversations:
        return max(conversations, key=lambda conversation: conversation.updated).id
    last = services.settings["last_conversation"]
    return last if any(conversation.id == last for conversation in conversations) else 0


def report_errors(logs: Path, window: "MainWindow") -> None:
    """Write what nobody caught to a file and say so in the window, instead of dying silently."""

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        text = "".join(traceback.format_exception(kind, error, trace))
        sys.stderr.write(text)
        try:
            with open(logs / "errors.log", "a", encoding="utf-8") as file:
                file.write(text + "\n")
        except OSError as full:
            sys.stderr.write(f"{full}\n")
        window.say(tr("Something went wrong in the program; the report is in the logs."), None)

    sys.excepthook = hook


def refuse(sentence: str) -> int:
    """Say why the program cannot start, and return its exit code."""
    from PySide6.QtWidgets import QMessageBox

    sys.stderr.write(f"error: {sentence}\n")
    if os.environ.get("QT_QPA_PLATFORM") != "offscreen":
        QMessageBox.critical(None, "Inglenook", sentence)
    return 1


def _raise(window: "MainWindow", file: str) -> None:
    window.setWindowState(window.windowState() & ~window.windowState().WindowMinimized)
    window.show()
    window.raise_()
    window.activateWindow()
    if file:
        window.open_file(Path(file))
