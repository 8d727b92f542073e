"""Which presets new chats begin with, everywhere and with one model, and the model's own values."""

import json
from typing import Any, Protocol

from app.presets import Preset, Presets
from app.services.sources import from_preset
from app.settings import Settings
from app.strings import tr

LEVELS = ("everywhere", "model")
MODELS_OWN = "models-own"  # the preset of what the file of the open model recommends


class OpenModel(Protocol):
    """What is asked of the engine: which file is open, and what it recommends."""

    own_sampling: dict[str, Any]

    def file_name(self) -> str:
        """Return the name of the open file, "" without one."""


class PresetLevels:
    """The preset of each level; a chat itself keeps plain values, the third level.

    A model is called by the name of its file. Until the person chooses for it, its own values
    stand over those of all chats, where it has any.
    """

    def __init__(self, settings: Settings, presets: Presets, engine: OpenModel) -> None:
        self._settings, self._presets, self._engine = settings, presets, engine
        self._known: dict[str, Preset] = {}

    def own(self) -> Preset:
        """Return what the file of the open model recommends as a preset, maybe without values."""
        values = dict(self._engine.own_sampling)
        help = tr("What the makers of this model recommend in its file.")
        return Preset(MODELS_OWN, tr("Model's own"), values, help=help, is_shipped=True)

    def offered(self) -> list[Preset]:
        """Return all presets: those that ship, the model's own, those of the person."""
        known = self._all()
        shipped = [preset for preset in known if preset.is_shipped]
        return [*shipped, self.own(), *(preset for preset in known if not preset.is_shipped)]

    def ids(self) -> dict[str, str]:
        """Return the id of the preset at each level, "" where there is none."""
        unasked = MODELS_OWN if self._engine.own_sampling else ""
        model = self._of_models().get(self._engine.file_name(), unasked)
        return {"everywhere": str(self._settings["preset"]), "model": model}

    def choose(self, level: str, preset_id: str) -> None:
        """Let new chats begin with a preset; "" takes it away. Raises StorageError."""
        model = self._engine.file_name()
        if level == "everywhere":
            self._settings["preset"] = preset_id
        elif model:
            self._settings["model_presets"] = json.dumps({**self._of_models(), model: preset_id})
        self._settings.save()

    def fresh(self) -> dict[str, Any]:
        """Return what a new chat begins with: its "sampling" values, and their "sources".

        Those of the model stand over those of all chats.
        """
        sampling: dict[str, Any] = {}
        sources: dict[str, list[str]] = {}
        for level in LEVELS:
            preset = self._preset(level)
            if preset is not None:
                sampling |= preset.sampling
                sources |= from_preset(level, preset.name, preset.sampling)
        return {"sampling": sampling, "sources": sources}

    def read_again(self) -> None:
        """Look at the presets on the disk again with the next question."""
        self._known = {}

    def _preset(self, level: str) -> Preset | None:
        preset_id = self.ids()[level]
        if preset_id == MODELS_OWN:
            return self.own()
        return next((preset for preset in self._all() if preset.id == preset_id), None)

    def _all(self) -> list[Preset]:
        if not self._known:
            self._known = {preset.id: preset for preset in self._presets.all()}
        return list(self._known.values())

    def _of_models(self) -> dict[str, str]:
        try:
            kept = json.loads(self._settings["model_presets"] or "{}")
        except (ValueError, RecursionError):
            return {}
        is_sound = isinstance(kept, dict) and all(isinstance(v, str) for v in kept.values())
        return kept if is_sound else {}
