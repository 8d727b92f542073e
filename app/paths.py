"""Where files live on each system: settings, conversations, models, logs and what can be rebuilt.

    config    settings and the person's presets           roams with the user on Windows
    stored    conversations, saved memory, models         never deleted by the program
    state     logs and crash reports
    cache     compiled kernels, partial downloads         may be deleted at any time

A file named `portable` beside the program, or `--data-dir`, puts all four into one folder.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from app.errors import StorageError
from app.files import storage_error

NAME = "inglenook"
PORTABLE = "portable"


@dataclass(frozen=True)
class Paths:
    """The four folders of one start of the program, and the files in them."""

    config: Path
    stored: Path
    state: Path
    cache: Path

    @property
    def settings(self) -> Path:
        """The settings file."""
        return self.config / "settings.json"

    @property
    def presets(self) -> Path:
        """Folder of the person's own presets."""
        return self.config / "presets"

    @property
    def chats(self) -> Path:
        """The database of conversations."""
        return self.stored / "conversations.sqlite"

    @property
    def models(self) -> Path:
        """Folder into which models are downloaded or copied."""
        return self.stored / "models"

    @property
    def snapshots(self) -> Path:
        """Folder of saved memory."""
        return self.stored / "snapshots"

    @property
    def logs(self) -> Path:
        """Folder of logs and crash reports."""
        return self.state / "logs"

    @property
    def downloads(self) -> Path:
        """Folder of partial downloads."""
        return self.cache / "downloads"

    def make(self) -> None:
        """Make all folders; raises StorageError for one that cannot be made or written."""
        for folder in (self.config, self.stored, self.models, self.logs, self.cache):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise storage_error(error, folder / "x") from error
            if not os.access(folder, os.W_OK):
                raise StorageError(str(storage_error(PermissionError(13, ""), folder / "x")))


def find_paths(data_dir: Path | None = None, beside: Path | None = None) -> Paths:
    """Return where files live: `data_dir`, a portable folder beside the program, or the system's.

    `beside` is the folder of the program (found when not given). Nothing is made.
    """
    beside = program_folder() if beside is None else beside
    if data_dir is None and (beside / PORTABLE).exists():
        data_dir = beside / "data"
    if data_dir is not None:
        root = data_dir.expanduser().absolute()
        return Paths(root / "config", root / "stored", root / "state", root / "cache")
    return Paths(
        config=Path(platformdirs.user_config_dir(NAME, appauthor=False, roaming=True)),
        stored=Path(platformdirs.user_data_dir(NAME, appauthor=False)),
        state=Path(platformdirs.user_state_dir(NAME, appauthor=False)),
        cache=Path(platformdirs.user_cache_dir(NAME, appauthor=False)),
    )


def program_folder() -> Path:
    """Return the folder that a person would call the program's."""
    appimage = os.environ.get("APPIMAGE")
    if appimage:
        return Path(appimage).parent
    if not getattr(sys, "frozen", False):
        return Path(__file__).resolve().parents[1]
    folder = Path(sys.executable).parent
    bundle = next((p for p in folder.parents if p.suffix == ".app"), None)
    return bundle.parent if bundle else folder


def resources_folder() -> Path:
    """Return the folder with presets, themes and catalogues, in a checkout or a bundle."""
    bundled = getattr(sys, "_MEIPASS", None)
    root = Path(bundled) if bundled else Path(__file__).resolve().parents[1]
    return root / "resources"


def _main() -> int:
    """Print a path by name (`python -m app.paths models`), or all of them."""
    paths = find_paths()
    names = sys.argv[1:]
    if any(not isinstance(getattr(paths, name, None), Path) for name in names):
        print(f"error: there is no path named {' '.join(names)}", file=sys.stderr)
        return 2
    for name in names:
        print(getattr(paths, name))
    if not names:
        print(paths)
    return 0


if __name__ == "__main__":
    sys.exit(_main())
