"""Settings are checked, written whole, kept for other versions, and never lost to damage."""

import json

import pytest

from app.errors import SettingError, StorageError
from app.settings import SETTINGS, Settings


@pytest.fixture
def path(tmp_path):
    return tmp_path / "Einstellungen ü" / "settings.json"


def test_values_survive_a_restart(path):
    settings = Settings.load(path)
    assert settings["theme"] == "system" and settings.notice == ""
    settings["theme"] = "dark"
    settings["model_folders"] = ["/mnt/ü 模型", "b"]
    settings["zoom"] = 120
    settings.save()
    again = Settings.load(path)
    assert (again["theme"], again["zoom"]) == ("dark", 120)
    assert again["model_folders"] == ["/mnt/ü 模型", "b"]
    assert again["reading_width"] == 72 and again.is_default("reading_width")
    again.reset("theme")
    again.save()
    assert Settings.load(path)["theme"] == "system"


@pytest.mark.parametrize(
    "key, value, says",
    [
        ("theme", "purple", "one of: system, light, dark"),
        ("theme", 3, "takes a text"),
        ("zoom", 49, "between 50 and 300"),
        ("zoom", 100.5, "whole number"),
        ("zoom", True, "whole number"),
        ("zoom", float("nan"), "whole number"),
        ("motion", 1, "yes or no"),
        ("model_folders", "x", "a list"),
        ("model_folders", [1], "texts only"),
        ("themes", "dark", "Did you mean “theme”"),
        ("n_ctx", 10**30, "between"),
    ],
)
def test_impossible_values_are_refused(path, key, value, says):
    settings = Settings.load(path)
    with pytest.raises(SettingError, match=says):
        settings[key] = value
    with pytest.raises(SettingError):
        settings["no such thing at all"]


def test_a_list_handed_out_is_a_copy(path):
    settings = Settings.load(path)
    settings["model_folders"].append("x")
    assert settings["model_folders"] == []


def test_what_this_version_does_not_know_is_kept(path):
    path.parent.mkdir()
    stored = {"from_the_future": {"a": [1]}, "zoom": 9999, "theme": "light"}
    path.write_text(json.dumps(stored))
    settings = Settings.load(path)
    assert settings["zoom"] == 100 and settings["theme"] == "light"
    assert "zoom" in settings.notice and "from_the_future" not in settings.notice
    settings["motion"] = False
    settings.save()
    assert json.loads(path.read_text()) == stored | {"motion": False}
    settings["zoom"] = 110
    settings.save()
    assert json.loads(path.read_text())["zoom"] == 110


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"theme": "dark"', bytes(50)]
)
def test_a_damaged_file_is_set_aside(path, raw):
    path.parent.mkdir()
    path.write_bytes(raw)
    settings = Settings.load(path)
    assert settings["theme"] == "system" and "damaged" in settings.notice
    (aside,) = path.parent.iterdir()
    assert aside.read_bytes() == raw and aside.name in settings.notice
    settings.save()
    assert Settings.load(path).notice == ""


def test_two_damaged_files_in_one_second_are_both_kept(path):
    path.parent.mkdir()
    for i in range(3):
        path.write_text(f"{{ {i}")
        Settings.load(path)
    kept = sorted(p.read_text() for p in path.parent.iterdir())
    assert kept == ["{ 0", "{ 1", "{ 2"]


def test_a_disk_that_refuses_leaves_the_old_file(path, monkeypatch):
    settings = Settings.load(path)
    settings["theme"] = "dark"
    settings.save()
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    settings["theme"] = "light"
    with pytest.raises(StorageError, match="disk is full"):
        settings.save()
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_odd_texts_can_be_stored(path):
    settings = Settings.load(path)
    settings["last_folder"] = "\ud800 \0 🔥"
    settings.save()
    assert Settings.load(path)["last_folder"] == "\ud800 \0 🔥"


def test_the_table_is_sound():
    assert len({setting.key for setting in SETTINGS}) == len(SETTINGS)
    for setting in SETTINGS:
        assert setting.checked(setting.default) == setting.default
        if setting.group:
            assert setting.label
        if setting.type in (int, float):
            assert setting.group == "" or None not in (setting.low, setting.high, setting.step)
