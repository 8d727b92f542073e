"""ACTIONS: every command of the window once, with its words and its keys."""

from dataclasses import dataclass

from PySide6.QtGui import QKeySequence

from app.strings import tr


@dataclass(frozen=True)
class Action:
    """A command.

    Attributes:
        label: one or two words for buttons and menus.
        help: what it does, for tooltips, the key sheet and screen readers.
        keys: shortcuts, the first one is shown; empty when it has none.
        group: heading on the key sheet.
    """

    label: str
    help: str
    keys: tuple[str, ...] = ()
    group: str = "Window"

    def shown_keys(self) -> str:
        """Return the first shortcut as this system writes it."""
        if not self.keys:
            return ""
        return QKeySequence(self.keys[0]).toString(QKeySequence.SequenceFormat.NativeText)

    def tip(self) -> str:
        """Return the tooltip: what it does and its key."""
        keys = self.shown_keys()
        return f"{tr(self.help)} ({keys})" if keys else tr(self.help)


ACTIONS: dict[str, Action] = {
    "chat.start": Action("New chat", "Start a new chat", ("Ctrl+N", "Ctrl+Shift+O"), "Chats"),
    "chat.search": Action("Search", "Search all chats", ("Ctrl+K", "Ctrl+Shift+F"), "Chats"),
    "chat.rename": Action("Rename", "Rename this chat", ("F2",), "Chats"),
    "chat.beside": Action("Open beside", "Open this chat in another pane", (), "Chats"),
    "chat.pin": Action("Pin", "Keep this chat at the top, or let it go", (), "Chats"),
    "chat.save": Action(
        "Save with its memory…",
        "Save this chat, and what the model remembers, in a file",
        (),
        "Chats",
    ),
    "chat.delete": Action(
        "Delete", "Move this chat to the trash", ("Ctrl+Shift+Backspace",), "Chats"
    ),
    "chat.previous": Action("Previous chat", "Open the chat above", ("Ctrl+Shift+Up",), "Chats"),
    "chat.next": Action("Next chat", "Open the chat below", ("Ctrl+Shift+Down",), "Chats"),
    "message.send": Action("Send", "Send the message", ("Ctrl+Return",), "Messages"),
    "message.stop": Action("Stop", "Stop the answer and keep what came", ("Esc",), "Messages"),
    "message.copy": Action("Copy", "Copy the message", (), "Messages"),
    "message.edit": Action("Edit", "Edit into another version", (), "Messages"),
    "message.regenerate": Action("Regenerate", "Answer again", ("Ctrl+R",), "Messages"),
    "message.continue": Action(
        "Continue", "Go on where the answer stopped", ("Alt+Return",), "Messages"
    ),
    "message.branch": Action(
        "Branch", "Go on from this message in another direction", (), "Messages"
    ),
    "message.replay": Action(
        "Replay", "Write the answer again with its own seed and values", (), "Messages"
    ),
    "message.details": Action("Info", "Show how the answer was made", (), "Messages"),
    "message.delete": Action("Delete", "Take this message out of the chat", (), "Messages"),
    "message.previous_version": Action(
        "Earlier version", "Show the earlier version of the answer", ("Alt+Left",), "Messages"
    ),
    "message.next_version": Action(
        "Later version", "Show the later version of the answer", ("Alt+Right",), "Messages"
    ),
    "message.copy_selection": Action(
        "Copy selection", "Copy the selected text", ("Ctrl+C",), "Messages"
    ),
    "message.copy_answer": Action(
        "Copy answer", "Copy the last answer", ("Ctrl+Shift+C",), "Messages"
    ),
    "message.copy_code": Action(
        "Copy code", "Copy the last code block", ("Ctrl+Shift+;",), "Messages"
    ),
    "message.edit_question": Action(
        "Edit question", "Edit the last question", ("Ctrl+Shift+E",), "Messages"
    ),
    "page.find": Action("Find", "Find in this chat", ("Ctrl+F",), "Messages"),
    "page.find_next": Action("Next place", "Go to the next place found", ("F3",), "Messages"),
    "page.find_previous": Action(
        "Previous place", "Go to the place found before", ("Shift+F3",), "Messages"
    ),
    "page.newest": Action(
        "Newest", "Go to the newest line and follow it", ("Ctrl+End",), "Messages"
    ),
    "composer.focus": Action("Write", "Go to the box you type in", ("Shift+Esc",), "Messages"),
    "pane.split": Action("Split", "Open another pane beside this one", ("Ctrl+\\",), "Panes"),
    "pane.close": Action(
        "Close pane", "Close this pane; its chat stays and goes on", ("Ctrl+W",), "Panes"
    ),
    "pane.send_all": Action(
        "Send to all panes",
        "Send this message in every pane, to compare the answers",
        ("Ctrl+Shift+Return", "Ctrl+Shift+Enter"),
        "Panes",
    ),
    "pane.next": Action("Next pane", "Go to the next pane", ("Ctrl+Tab",), "Panes"),
    "pane.previous": Action("Previous pane", "Go to the pane before", ("Ctrl+Shift+Tab",), "Panes"),
    "model.choose": Action("Choose model", "Choose a model", ("Ctrl+Shift+M",), "Model"),
    "model.open": Action(
        "Open file", "Open a model, or a chat that was saved", ("Ctrl+O",), "Model"
    ),
    "model.unload": Action("Unload", "Take the model out of memory", (), "Model"),
    "window.sidebar": Action("Chats", "Show or hide the chats", ("Ctrl+B",)),
    "window.inspector": Action("Inspector", "Show or hide the inspector", ("Ctrl+I",)),
    "window.larger": Action("Larger", "Make everything larger", ("Ctrl++", "Ctrl+=")),
    "window.smaller": Action("Smaller", "Make everything smaller", ("Ctrl+-",)),
    "window.normal": Action("Normal size", "Back to the normal size", ("Ctrl+0",)),
    "window.appearance": Action("Appearance", "Change between light, dark and the system's", ()),
    "window.settings": Action("Settings", "Open the settings", ("Ctrl+,",)),
    "window.keys": Action("Keys", "Show all keys", ("F1", "Ctrl+/")),
    "window.folder": Action("Open data folder", "Open the folder with your chats", ()),
    "window.about": Action("About Inglenook", "Version, licences and this machine", ()),
    "window.quit": Action("Quit", "Close the window and end the engine", ("Ctrl+Q",)),
}
