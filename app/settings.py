"""The preferences of a person: read from one file, checked against SETTINGS, written whole.

The file is JSON; keys that this version does not know are kept for the version that does.
"""

import json
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from app.errors import SettingError
from app.files import set_aside, storage_error, write_whole
from app.settings_table import SETTINGS, Setting
from app.strings import tr

__all__ = ["SETTINGS", "Setting", "Settings", "setting_named"]

MAX_FILE_BYTES = 16 << 20

_BY_KEY = {setting.key: setting for setting in SETTINGS}


def setting_named(key: str) -> Setting:
    """Return the row of a key; raises SettingError with the nearest known key."""
    if key not in _BY_KEY:
        near = get_close_matches(key, _BY_KEY, n=1)
        hint = tr(" Did you mean “{near}”?", near=near[0]) if near else ""
        raise SettingError(tr("There is no setting “{key}”.", key=key) + hint)
    return _BY_KEY[key]


class Settings:
    """The preferences of one start: read once, changed one by one, saved whole.

    `notice` is a sentence to show when the file was damaged or held impossible values, else "".
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.notice = ""
        self._values: dict[str, Any] = {}
        self._kept: dict[str, Any] = {}  # what the file holds and this version cannot use

    @classmethod
    def load(cls, path: Path) -> "Settings":
        """Read a settings file; a missing one means defaults, a damaged one is set aside.

        Raises StorageError only when the disk itself refuses.
        """
        settings = cls(path)
        try:
            with open(path, "rb") as file:
                raw = file.read(MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            return settings
        except OSError as error:
            raise storage_error(error, path) from error
        try:
            settings._take(_parsed(raw))
        except (ValueError, RecursionError):
            aside = set_aside(path)
            settings.notice = tr(
                "The settings were damaged and start afresh; the old file is kept as “{name}”.",
                name=aside.name,
            )
        return settings

    def __getitem__(self, key: str) -> Any:
        setting = setting_named(key)
        value = self._values.get(key, setting.default)
        return list(value) if isinstance(value, list) else value

    def __setitem__(self, key: str, value: Any) -> None:
        self._values[key] = setting_named(key).checked(value)
        self._kept.pop(key, None)

    def is_default(self, key: str) -> bool:
        """Say whether a setting has its default value."""
        return bool(self[key] == setting_named(key).default)

    def reset(self, key: str) -> None:
        """Give a setting its default value again."""
        setting_named(key)
        self._values.pop(key, None)
        self._kept.pop(key, None)

    def save(self) -> None:
        """Write all values that were ever set; raises StorageError and leaves the old file."""
        if self.path is not None:
            text = json.dumps(self._kept | self._values, indent=2)
            write_whole(self.path, text.encode() + b"\n")

    def _take(self, stored: Mapping[str, Any]) -> None:
        refused = []
        for key, value in stored.items():
            try:
                self[key] = value
            except SettingError:
                self._kept[key] = value
                if key in _BY_KEY:
                    refused.append(key)
        if refused:
            self.notice = tr(
                "These settings had impossible values and are at their defaults: {keys}.",
                keys=", ".join(refused),
            )


def _parsed(raw: bytes) -> dict[str, Any]:
    """Return the object in a settings file; raises ValueError for anything else."""
    stored = json.loads(raw.decode("utf-8-sig")) if len(raw) <= MAX_FILE_BYTES else None
    if not isinstance(stored, dict):
        raise ValueError("not an object")
    return stored
