"""The folders in which models are looked for: our own, added ones, and those of other programs."""

import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

MAX_POINTER_BYTES = 1 << 16


@dataclass(frozen=True)
class Place:
    """A folder with models. `kind` says how names are read: own, folder, lmstudio, hub, llama,
    gpt4all, jan or ollama. `is_added`: a person added it, so it is named when it is missing.
    """

    kind: str
    program: str
    path: Path
    is_added: bool = False


def places(
    models: Path,
    added: Iterable[str] = (),
    home: Path | None = None,
    environment: Mapping[str, str] | None = None,
    system: str = sys.platform,
) -> list[Place]:
    """Return all places in the order in which they are searched; they need not exist.

    `models` is our own folder and `added` the person's. `home`, `environment` and `system` are
    this machine's unless given.
    """
    home = Path.home() if home is None else home
    variables = os.environ if environment is None else environment
    found = [Place("own", "Inglenook", models)]
    found += [Place("folder", "", Path(folder).expanduser(), True) for folder in added]
    found += [Place("ollama", "Ollama", path) for path in _ollama(home, variables, system)]
    found += [Place("lmstudio", "LM Studio", path) for path in _lm_studio(home)]
    found += [Place("hub", "Hugging Face", path) for path in _hub(home, variables)]
    shared = _Shared(home, variables, system)
    llama = variables.get("LLAMA_CACHE")
    found.append(Place("llama", "llama.cpp", Path(llama) if llama else shared.cache / "llama.cpp"))
    found.append(Place("gpt4all", "GPT4All", shared.local / "nomic.ai" / "GPT4All"))
    for root in dict.fromkeys((shared.config, shared.local)):
        found.append(Place("jan", "Jan", root / "Jan" / "data"))
    return list({place.path: place for place in reversed(found)}.values())[::-1]


class _Shared:
    """The folders in which a system keeps programs' settings, local files and caches."""

    def __init__(self, home: Path, variables: Mapping[str, str], system: str) -> None:
        if system == "win32":
            self.config = Path(variables.get("APPDATA") or home / "AppData" / "Roaming")
            self.local = Path(variables.get("LOCALAPPDATA") or home / "AppData" / "Local")
            self.cache = self.local
        elif system == "darwin":
            self.config = self.local = home / "Library" / "Application Support"
            self.cache = home / "Library" / "Caches"
        else:
            self.config = Path(variables.get("XDG_CONFIG_HOME") or home / ".config")
            self.local = Path(variables.get("XDG_DATA_HOME") or home / ".local" / "share")
            self.cache = Path(variables.get("XDG_CACHE_HOME") or home / ".cache")


def _ollama(home: Path, variables: Mapping[str, str], system: str) -> list[Path]:
    given = variables.get("OLLAMA_MODELS")
    own = [Path(given)] if given else []
    service = ("/usr/share/ollama/.ollama/models", "/var/lib/ollama/models")
    shared = map(Path, service if system == "linux" else ())
    return [*own, home / ".ollama" / "models", *shared]


def _lm_studio(home: Path) -> list[Path]:
    """LM Studio's home can be moved (a pointer file says where), and so can its models."""
    root = Path(_text(home / ".lmstudio-home-pointer") or home / ".lmstudio")
    try:
        stated = json.loads(_text(root / "settings.json") or "{}")
    except (ValueError, RecursionError):
        stated = {}
    moved = stated.get("downloadsFolder") if isinstance(stated, dict) else None
    found = [Path(moved)] if isinstance(moved, str) and moved and "\0" not in moved else []
    return [*found, root / "models", home / ".cache" / "lm-studio" / "models"]


def _text(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(MAX_POINTER_BYTES).decode("utf-8", "replace").strip().strip("\0")
    except (OSError, ValueError):
        return ""


def _hub(home: Path, variables: Mapping[str, str]) -> list[Path]:
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if variables.get(name):
            return [Path(variables[name])]
    if variables.get("HF_HOME"):
        return [Path(variables["HF_HOME"]) / "hub"]
    cache = Path(variables.get("XDG_CACHE_HOME") or home / ".cache")
    return [cache / "huggingface" / "hub"]
