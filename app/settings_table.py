"""SETTINGS: key, type, default, range, label and help of everything a person may prefer.

The settings page, its tooltips and the check of a value are all made from this table.
"""

from dataclasses import dataclass
from typing import Any

from app.errors import SettingError
from app.strings import tr


@dataclass(frozen=True)
class Setting:
    """One preference. `type` is bool, int, float, str or list (of str).

    `low`, `high` and `step` bound a number; `choices` are the words a str may be (any if empty).
    `group` is the section of the settings page; "" means that no page shows it.
    """

    key: str
    type: type
    default: Any
    group: str = ""
    label: str = ""
    help: str = ""
    low: float | None = None
    high: float | None = None
    step: float | None = None
    choices: tuple[str, ...] = ()

    def checked(self, value: Any) -> Any:
        """Return `value` as this setting stores it; raises SettingError if it cannot take it."""
        kind = type(value)
        if self.type is float and kind is int:
            value, kind = float(value), float
        if kind is not self.type or value != value:
            raise SettingError(
                tr(
                    "The setting “{key}” takes {what}, not {value}.",
                    key=self.key,
                    what=_WHAT[self.type],
                    value=repr(value)[:60],
                )
            )
        if self.type is list and not all(isinstance(item, str) for item in value):
            raise SettingError(tr("The setting “{key}” takes texts only.", key=self.key))
        if self.choices and value not in self.choices:
            choices = ", ".join(self.choices)
            raise SettingError(
                tr("The setting “{key}” is one of: {choices}.", key=self.key, choices=choices)
            )
        if self.type in (int, float) and not self._in_range(value):
            raise SettingError(
                tr(
                    "The setting “{key}” lies between {low} and {high}.",
                    key=self.key,
                    low=self.low,
                    high=self.high,
                )
            )
        return list(value) if self.type is list else value

    def _in_range(self, value: float) -> bool:
        above = self.low is None or value >= self.low
        return above and (self.high is None or value <= self.high)


_WHAT = {bool: "yes or no", int: "a whole number", float: "a number", str: "a text", list: "a list"}

_LOOK, _WRITING, _CHATS = "Appearance", "Writing", "Conversations"
_MODELS, _ENGINE = "Models", "Engine"

SETTINGS: tuple[Setting, ...] = (
    Setting(
        "theme",
        str,
        "system",
        _LOOK,
        "Theme",
        "Follow the system, or always light or dark.",
        choices=("system", "light", "dark"),
    ),
    Setting(
        "language",
        str,
        "system",
        _LOOK,
        "Language",
        "Language of menus and messages.",
        choices=("system", "en", "zh_CN"),
    ),
    Setting(
        "zoom",
        int,
        100,
        _LOOK,
        "Zoom",
        "Size of everything, in percent.",
        low=50,
        high=300,
        step=10,
    ),
    Setting(
        "reading_width",
        int,
        72,
        _LOOK,
        "Reading width",
        "Longest line of an answer, in characters.",
        low=40,
        high=200,
        step=4,
    ),
    Setting("code_font", str, "", _LOOK, "Font for code", "Empty for the built-in one."),
    Setting(
        "motion",
        bool,
        True,
        _LOOK,
        "Motion",
        "Short movements when panels open and fold.",
    ),
    Setting(
        "send_key",
        str,
        "enter",
        _WRITING,
        "Send with",
        "The other one starts a new line; Ctrl+Enter always sends.",
        choices=("enter", "shift+enter"),
    ),
    Setting(
        "paste_limit",
        int,
        2500,
        _WRITING,
        "Long pastes",
        "Text longer than this becomes an attachment, in characters; 0 never does it.",
        low=0,
        high=1_000_000,
        step=500,
    ),
    Setting(
        "ask_before_deleting",
        bool,
        False,
        _CHATS,
        "Ask before deleting",
        "Deleted conversations stay in the trash either way.",
    ),
    Setting(
        "trash_days",
        int,
        30,
        _CHATS,
        "Keep the trash for",
        "Days until a deleted conversation is removed for good.",
        low=1,
        high=3650,
        step=1,
    ),
    Setting(
        "keep_memory",
        bool,
        True,
        _CHATS,
        "Keep the model's memory on the disk",
        "A chat goes on after a restart without being read again; off deletes what is kept.",
    ),
    Setting(
        "memory_gb",
        int,
        8,
        _CHATS,
        "Room for memory",
        "GB on the disk for the memory of chats; the oldest go first.",
        low=1,
        high=10_000,
        step=1,
    ),
    Setting(
        "keep_reasoning",
        bool,
        False,
        _CHATS,
        "Keep reasoning in the context",
        "Show the model its earlier thoughts again; costs room in its memory.",
    ),
    Setting(
        "model_folders",
        list,
        [],
        _MODELS,
        "More model folders",
        "Folders that are searched for .gguf files, in place.",
    ),
    Setting(
        "load_last_model",
        bool,
        True,
        _MODELS,
        "Load the last model at start",
        "So that the first question is answered at once.",
    ),
    Setting(
        "n_ctx",
        int,
        8192,
        _ENGINE,
        "Context",
        "Tokens a conversation may hold; 0 takes what the model was trained with.",
        low=0,
        high=16_777_216,
        step=1024,
    ),
    Setting(
        "n_threads",
        int,
        0,
        _ENGINE,
        "Threads for writing",
        "0 takes one per core.",
        low=0,
        high=1024,
        step=1,
    ),
    Setting(
        "n_threads_batch",
        int,
        0,
        _ENGINE,
        "Threads for reading",
        "0 takes one per core.",
        low=0,
        high=1024,
        step=1,
    ),
    Setting(
        "n_batch",
        int,
        2048,
        _ENGINE,
        "Batch",
        "Tokens of a prompt that are scheduled together.",
        low=32,
        high=65_536,
        step=32,
    ),
    Setting(
        "n_ubatch",
        int,
        512,
        _ENGINE,
        "Physical batch",
        "Tokens of a prompt that are computed at once.",
        low=32,
        high=8192,
        step=32,
    ),
    Setting("preset", str, "balanced"),
    Setting("model_presets", str, ""),
    Setting("last_model", str, ""),
    Setting("last_conversation", int, 0),
    Setting("last_folder", str, ""),
    Setting("window", str, ""),
    Setting("splitters", str, ""),
    Setting("panes", str, ""),
    Setting("sidebar_open", bool, True),
    Setting("inspector_open", bool, True),
)
