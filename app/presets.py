"""Named sampling settings and system prompts: those that ship and those a person saves.

A preset names only the samplers it wants to differ from the engine's defaults. Each is one JSON
file; the name stands in the file, so that any script works whatever the disk can spell.
"""

import hashlib
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.errors import SettingError, StorageError
from app.files import storage_error, write_whole
from app.strings import tr

MAX_FILE_BYTES = 1 << 20
MAX_NAME = 80
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)", re.I)  # no file names on Windows


@dataclass(frozen=True)
class Preset:
    """One preset: `sampling` maps SamplingParams' field names to values."""

    id: str
    name: str
    sampling: dict[str, Any]
    system: str = ""
    help: str = ""
    is_shipped: bool = False
    order: int = 1000


class Presets:
    """The presets in two folders: shipped with the program, and the person's own.

    `notices` are sentences about files that could not be read; they are left where they are.
    """

    def __init__(self, shipped: Path, own: Path) -> None:
        self._shipped = shipped
        self._own = own
        self.notices: list[str] = []

    def all(self) -> list[Preset]:
        """Return all presets: the shipped ones in their order, then the person's by name."""
        self.notices = []
        found = self._in(self._shipped, is_shipped=True)
        taken = {preset.id for preset in found}
        found += [preset for preset in self._in(self._own) if preset.id not in taken]
        return sorted(found, key=lambda p: (not p.is_shipped, p.order, p.name.casefold()))

    def find(self, preset_id: str) -> Preset | None:
        """Return a preset by its id, or None."""
        return next((preset for preset in self.all() if preset.id == preset_id), None)

    def save(self, name: str, sampling: dict[str, Any], system: str = "") -> Preset:
        """Store a preset under a name, replacing the person's own of that name; returns it.

        Raises SettingError for a name that is empty, too long or shipped, StorageError for the
        disk.
        """
        name = " ".join(name.split())
        if not name or len(name) > MAX_NAME or not name.isprintable():
            raise SettingError(tr("Give the preset a name of up to {n} letters.", n=MAX_NAME))
        known = {preset.name.casefold(): preset for preset in self.all()}
        same = known.get(name.casefold())
        if same is not None and same.is_shipped:
            raise SettingError(
                tr("“{name}” comes with the program; choose another name.", name=name)
            )
        preset_id = same.id if same else self._free_id(name)
        stored = {"name": name, "sampling": sampling, "system": system}
        write_whole(self._path(preset_id), json.dumps(stored, indent=2).encode())
        return Preset(preset_id, name, dict(sampling), system)

    def delete(self, preset_id: str) -> None:
        """Remove one of the person's own presets; saving it again brings it back."""
        try:
            self._path(preset_id).unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(error, self._path(preset_id)) from error

    def _path(self, preset_id: str) -> Path:
        if not re.fullmatch(r"[a-z0-9-]{1,60}", preset_id):
            raise SettingError(tr("There is no preset “{name}”.", name=preset_id[:60]))
        return self._own / f"{preset_id}.json"

    def _free_id(self, name: str) -> str:
        plain = re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")[:40]
        is_exact = bool(plain) and not _RESERVED.fullmatch(plain)
        mark = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
        taken = {preset.id for preset in self.all()} | {p.stem for p in self._files(self._own)}
        return plain if is_exact and plain not in taken else f"{plain or 'preset'}-{mark}"

    def _in(self, folder: Path, is_shipped: bool = False) -> list[Preset]:
        found = []
        for path in self._files(folder):
            try:
                found.append(_read(path, is_shipped))
            except OSError as error:
                self.notices.append(str(storage_error(error, path)))
            except (ValueError, RecursionError):
                self.notices.append(tr("The preset “{name}” cannot be read.", name=path.name))
        return found

    def _files(self, folder: Path) -> list[Path]:
        try:
            return sorted(path for path in folder.iterdir() if path.suffix == ".json")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageError(str(storage_error(error, folder / "x"))) from error


def _read(path: Path, is_shipped: bool) -> Preset:
    """Return the preset in a file; raises OSError, or ValueError for anything else inside."""
    with open(path, "rb") as file:
        stored = json.loads(file.read(MAX_FILE_BYTES))
    if not isinstance(stored, dict):
        raise ValueError("not an object")
    name, sampling = stored.get("name"), stored.get("sampling")
    system, order = stored.get("system", ""), stored.get("order", 1000)
    texts = (name, system, stored.get("help", ""))
    if not all(isinstance(text, str) for text in texts) or not isinstance(sampling, dict):
        raise ValueError("not a preset")
    if not name or not isinstance(order, int):
        raise ValueError("not a preset")
    values = {k: value for k, value in sampling.items() if k == "logit_bias" or _is_value(value)}
    return Preset(
        path.stem, str(name)[:MAX_NAME], values, system, texts[2] or "", is_shipped, order
    )


def _is_value(value: Any) -> bool:
    """Tell whether a value may be one of sampling: a finite number, a switch, a list of names."""
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return isinstance(value, int | float) and math.isfinite(value)
