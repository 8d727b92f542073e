"""Presets ship in order, are saved under any name, and no bad file takes the others along."""

import json

import pytest

from app.errors import SettingError, StorageError
from app.paths import resources_folder
from app.presets import Presets
from engine.params import SamplingParams

SHIPPED = resources_folder() / "presets"


@pytest.fixture
def presets(tmp_path):
    return Presets(SHIPPED, tmp_path / "presets")


def test_three_presets_ship_and_the_engine_takes_them(presets):
    assert [preset.name for preset in presets.all()] == ["Precise", "Balanced", "Creative"]
    for preset in presets.all():
        SamplingParams(**preset.sampling)
        assert preset.is_shipped and preset.help
    hot = {preset.id: preset.sampling["temperature"] for preset in presets.all()}
    assert hot["precise"] < hot["balanced"] < hot["creative"]


@pytest.mark.parametrize(
    "name", ["Mine", "Größe", "日本", "con", "a/b\\c:d", "x" * 80, "  two  w "]
)
def test_any_name_is_saved_and_found(presets, name):
    values = {"temperature": 0.3, "samplers": ["top_k"]}
    saved = presets.save(name, values, "You are 日本.")
    found = presets.find(saved.id)
    assert found == saved
    assert (found.name, found.sampling) == (" ".join(name.split()), values)
    assert found.system == "You are 日本." and not found.is_shipped
    assert presets.all()[-1] == saved
    presets.save(name.upper(), {"temperature": 0.4})
    assert [p.sampling for p in presets.all()[3:]] == [{"temperature": 0.4}]
    presets.delete(saved.id)
    assert len(presets.all()) == 3


def test_names_that_look_alike_on_disk_stay_apart(presets):
    for name in ("a b", "a-b", "a/b", "Ä", "Ö", "日", "本", "precise!"):
        presets.save(name, {"top_k": len(name)})
    own = presets.all()[3:]
    assert len(own) == 8 and len({preset.id for preset in own}) == 8


@pytest.mark.parametrize("name", ["", "   ", "x" * 81, "a\x07b", "Precise", "bALANCED"])
def test_names_that_cannot_be(presets, name):
    with pytest.raises(SettingError):
        presets.save(name, {})


@pytest.mark.parametrize("preset_id", ["../settings", "", "A", "a/b", "x" * 100])
def test_an_id_never_leaves_the_folder(presets, preset_id):
    with pytest.raises(SettingError):
        presets.delete(preset_id)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b"\xff",
        json.dumps({"name": 3, "sampling": {}}).encode(),
        json.dumps({"name": "x", "sampling": []}).encode(),
        json.dumps({"name": "x", "sampling": {}, "system": None}).encode(),
        json.dumps({"name": "x", "sampling": {}, "order": "1"}).encode(),
    ],
)
def test_a_damaged_preset_is_named_and_left(presets, tmp_path, raw):
    presets.save("good", {})
    bad = tmp_path / "presets" / "bad.json"
    bad.write_bytes(raw)
    assert [p.name for p in presets.all()] == ["Precise", "Balanced", "Creative", "good"]
    assert len(presets.notices) == 1 and "bad.json" in presets.notices[0]
    assert bad.read_bytes() == raw


def test_a_disk_that_refuses(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError):
        Presets(SHIPPED, tmp_path / "file").save("x", {})


def test_values_that_cannot_be_values_are_left_out(presets, tmp_path):
    values = '{"temperature": "hot", "top_k": 7, "top_p": NaN, "samplers": ["top_k"]}'
    (tmp_path / "presets").mkdir()
    (tmp_path / "presets" / "odd.json").write_text(f'{{"name": "Odd", "sampling": {values}}}')
    assert presets.find("odd").sampling == {"top_k": 7, "samplers": ["top_k"]}
