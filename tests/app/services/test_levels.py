"""What new chats begin with: three levels, the model's own values, and where each is from."""

from types import SimpleNamespace

import pytest

from app.presets import Presets
from app.services.preset_levels import MODELS_OWN, PresetLevels
from app.services.sources import in_a_word, in_words, source_of
from app.settings import Settings


@pytest.fixture
def engine():
    made = SimpleNamespace(own_sampling={}, name="tiny.gguf")
    made.file_name = lambda: made.name
    return made


@pytest.fixture
def levels(tmp_path, engine):
    from app.paths import resources_folder

    presets = Presets(resources_folder() / "presets", tmp_path / "presets")
    return PresetLevels(Settings.load(tmp_path / "settings.json"), presets, engine)


def test_a_new_chat_notes_where_each_value_is_from(levels):
    levels.choose("everywhere", "balanced")
    levels.choose("model", "precise")
    begun = levels.fresh()
    assert begun["sampling"]["temperature"] == 0.2
    assert begun["sources"]["temperature"] == ["model", "Precise"]
    levels.choose("model", "")
    begun = levels.fresh()
    assert begun["sources"]["temperature"] == ["everywhere", "Balanced"]
    assert begun["sources"].keys() == begun["sampling"].keys()


def test_equal_values_of_two_levels_are_told_apart(levels, engine):
    engine.own_sampling = {"temperature": 0.8, "top_k": 40}
    begun = levels.fresh()
    assert begun["sources"]["temperature"] == ["model", "Model's own"]
    assert begun["sources"]["min_p"] == ["everywhere", "Balanced"]


def test_the_models_own_values_hold_until_the_person_wants_others(levels, engine):
    assert levels.ids()["model"] == "" and levels.own().sampling == {}
    engine.own_sampling = {"temperature": 0.6}
    assert levels.ids()["model"] == MODELS_OWN
    assert levels.fresh()["sampling"]["temperature"] == 0.6
    levels.choose("model", "")
    assert levels.fresh()["sampling"]["temperature"] == 0.8
    levels.choose("model", MODELS_OWN)
    assert levels.fresh()["sampling"]["temperature"] == 0.6
    engine.name = "another.gguf"
    assert levels.ids()["model"] == MODELS_OWN
    engine.own_sampling = {}
    assert levels.ids()["model"] == ""


def test_the_models_own_may_stand_everywhere(levels, engine):
    levels.choose("everywhere", MODELS_OWN)
    assert levels.fresh() == {"sampling": {}, "sources": {}}
    levels.choose("model", "")
    engine.own_sampling = {"top_k": 7}
    assert levels.fresh()["sources"] == {"top_k": ["everywhere", "Model's own"]}


def test_every_preset_is_offered_the_models_own_behind_the_shipped(levels, engine):
    ids = [preset.id for preset in levels.offered()]
    assert ids == ["precise", "balanced", "creative", MODELS_OWN]
    engine.own_sampling = {"top_k": 7}
    assert levels.offered()[-1].sampling == {"top_k": 7}


@pytest.mark.parametrize("kept", ["[1", "7", '{"tiny.gguf": 3}', "[]", '{"tiny.gguf": "gone"}'])
def test_damaged_choices_are_none(levels, kept):
    levels._settings["model_presets"] = kept
    assert levels.fresh()["sampling"]["temperature"] == 0.8
    levels.choose("model", "precise")
    assert levels.fresh()["sampling"]["temperature"] == 0.2


def test_sources_in_words():
    assert in_a_word(None) == "default" and in_a_word(["chat", ""]) == "this chat"
    assert in_a_word(["model", "Precise"]) == "Precise"
    assert in_words(["everywhere", "Balanced"]) == "Balanced, everywhere"
    assert in_words(["chat", "Mine"]) == "Mine, in this chat"
    assert source_of(None, "top_k", is_set=True) == ["chat", ""]  # of an older version
    assert source_of({}, "top_k", is_set=True) is None
    for damaged in (7, [1, 2], ["chat"], {"a": 1}, "chat"):
        assert source_of({"top_k": damaged}, "top_k", is_set=True) is None
