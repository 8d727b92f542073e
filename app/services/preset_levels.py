"""Which preset new chats begin with, everywhere and with one model, and where a value is from."""

import json
from collections.abc import Mapping
from typing import Any

from app.presets import Preset, Presets
from app.settings import Settings
from app.strings import tr

LEVELS = ("everywhere", "model")


class PresetLevels:
    """The preset of each level; a chat itself keeps plain values, the third level.

    A model is called by the name of its file; "" is none.
    """

    def __init__(self, settings: Settings, presets: Presets) -> None:
        self._settings, self._presets = settings, presets
        self._known: dict[str, Preset] = {}

    def ids(self, model: str) -> dict[str, str]:
        """Return the id of the preset at each level, "" where there is none."""
        everywhere = str(self._settings["preset"])
        return {"everywhere": everywhere, "model": self._of_models().get(model, "")}

    def choose(self, level: str, preset_id: str, model: str) -> None:
        """Let new chats begin with a preset; "" takes it away. Raises StorageError."""
        if level == "everywhere":
            self._settings["preset"] = preset_id
        elif model:
            chosen = {**self._of_models(), model: preset_id}
            kept = {name: wanted for name, wanted in chosen.items() if wanted}
            self._settings["model_presets"] = json.dumps(kept)
        self._settings.save()

    def fresh(self, model: str) -> dict[str, Any]:
        """Return the values that a new chat begins with: those of the model over those of all."""
        return {**self._values("everywhere", model), **self._values("model", model)}

    def read_again(self) -> None:
        """Look at the presets on the disk again with the next question."""
        self._known = {}

    def source(self, key: str, value: Any, default: Any, model: str) -> str:
        """Return in a word or two where a value of a chat comes from."""
        for level in ("model", "everywhere"):
            if key in self._values(level, model) and value == self._values(level, model)[key]:
                return tr(self._preset(level, model).name)  # type: ignore[union-attr]
        is_inherited = any(key in self._values(level, model) for level in LEVELS)
        return tr("default") if value == default and not is_inherited else tr("this chat")

    def _values(self, level: str, model: str) -> Mapping[str, Any]:
        preset = self._preset(level, model)
        return preset.sampling if preset is not None else {}

    def _preset(self, level: str, model: str) -> Preset | None:
        if not self._known:
            self._known = {preset.id: preset for preset in self._presets.all()}
        return self._known.get(self.ids(model)[level])

    def _of_models(self) -> dict[str, str]:
        try:
            kept = json.loads(self._settings["model_presets"] or "{}")
        except (ValueError, RecursionError):
            return {}
        is_sound = isinstance(kept, dict) and all(isinstance(v, str) for v in kept.values())
        return kept if is_sound else {}
