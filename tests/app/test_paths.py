"""Files go where the system, the portable marker or --data-dir says."""

import os
import sys

import pytest

from app.errors import StorageError
from app.paths import find_paths, program_folder, resources_folder


def folders(paths):
    return (paths.config, paths.stored, paths.state, paths.cache)


@pytest.mark.skipif(sys.platform != "linux", reason="the folders of Linux")
def test_the_system_says_where(tmp_path, monkeypatch):
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    paths = find_paths(beside=tmp_path)
    expected = [tmp_path / name / "inglenook" for name in ("CONFIG", "DATA", "STATE", "CACHE")]
    assert list(folders(paths)) == expected


def test_one_folder_on_request_holds_everything(tmp_path):
    paths = find_paths(tmp_path / "ü 会")
    assert all(folder.is_relative_to(tmp_path / "ü 会") for folder in folders(paths))
    assert not (tmp_path / "ü 会").exists()
    paths.make()
    assert paths.models.is_dir() and paths.config.is_dir() and paths.logs.is_dir()
    for file in (paths.settings, paths.chats, paths.presets, paths.snapshots, paths.downloads):
        assert file.is_relative_to(tmp_path)


def test_a_portable_marker_keeps_all_beside_the_program(tmp_path):
    (tmp_path / "portable").touch()
    paths = find_paths(beside=tmp_path)
    assert all(folder.is_relative_to(tmp_path) for folder in folders(paths))
    elsewhere = find_paths(tmp_path / "given", beside=tmp_path)
    assert elsewhere.config == tmp_path / "given" / "config"


def test_a_relative_folder_stays_where_it_was_meant(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = find_paths(type(tmp_path)("here"))
    monkeypatch.chdir("/")
    assert paths.config == tmp_path / "here" / "config"


def test_a_folder_that_cannot_be_made_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="could not be"):
        find_paths(tmp_path / "file").make()
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(StorageError, match="cannot be written"):
        find_paths(tmp_path / "x").make()


def test_where_the_program_is(tmp_path, monkeypatch):
    assert (program_folder() / "app" / "paths.py").exists()
    assert resources_folder().name == "resources"
    monkeypatch.setenv("APPIMAGE", str(tmp_path / "Inglenook.AppImage"))
    assert program_folder() == tmp_path
    monkeypatch.delenv("APPIMAGE")
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "I.app" / "Contents" / "MacOS" / "i"))
    assert program_folder() == tmp_path
    monkeypatch.setattr(sys, "_MEIPASS", str(tmp_path / "bundle"), raising=False)
    assert resources_folder() == tmp_path / "bundle" / "resources"
