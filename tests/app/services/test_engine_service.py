"""Loading: stages, failures in words, another model, giving up; nothing blocks the caller."""

import threading
import time

import pytest

import engine
from app.services.engine_service import EngineService, sentence
from app.services.jobs import Jobs
from tests.make import window as make


@pytest.fixture
def jobs(qapp):
    made = Jobs()
    yield made
    made.close()


def test_a_model_loads_with_stages_and_can_be_left(jobs, qtbot, tmp_path):
    clients = make.Clients()
    service = EngineService(jobs, clients)
    states, stages = [], []
    service.changed.connect(lambda: states.append(service.state))
    service.progressed.connect(lambda: stages.append((service.stage, service.done)))
    service.load(tmp_path / "a model.gguf", n_ctx=512)
    assert service.state == "loading" and service.name == "a model"
    qtbot.waitUntil(lambda: service.state == "ready")
    assert clients.asked[0]["n_ctx"] == 512 and service.n_ctx == 4096
    assert service.n_tokens("some words here") == len(clients.last.tokenize("some words here"))
    service.unload()
    assert service.state == "empty" and service.client is None
    qtbot.waitUntil(lambda: clients.last.state == "closed")
    assert states == ["loading", "ready", "empty"]
    service.close()


def test_a_file_that_is_refused_leaves_a_sentence_and_the_details(jobs, qtbot, tmp_path):
    def refuse(path, **options):
        raise engine.ModelFileError("The file is cut short: 3.1 of 4.7 GB.")

    service = EngineService(jobs, refuse)
    service.load(tmp_path / "x.gguf")
    qtbot.waitUntil(lambda: service.state == "failed")
    assert service.error == "The file is cut short: 3.1 of 4.7 GB."
    assert "ModelFileError" in service.details and service.client is None


def test_a_load_that_fails_later_says_why(jobs, qtbot, tmp_path):
    clients = make.Clients(load_error=engine.UnsupportedModelError("No such architecture: “x”."))
    service = EngineService(jobs, clients)
    service.load(tmp_path / "x.gguf")
    qtbot.waitUntil(lambda: service.state == "failed")
    assert "architecture" in service.error
    qtbot.waitUntil(lambda: clients.last.state in ("failed", "closed"))
    service.close()
    clients.last.close()


def test_the_last_wish_wins(jobs, qtbot, tmp_path):
    slow = threading.Event()

    def make_client(path, progress=None, **options):
        if path.stem == "first":
            slow.wait(5)
        return engine.FakeClient(path, progress=progress)

    service = EngineService(jobs, make_client)
    service.load(tmp_path / "first.gguf")
    service.load(tmp_path / "second.gguf")
    slow.set()
    qtbot.waitUntil(lambda: service.state == "ready")
    assert service.path.stem == "second" and service.client.model_path.stem == "second"
    service.close()


def test_loading_never_holds_the_window(jobs, qtbot, tmp_path):
    def make_client(path, progress=None, **options):
        time.sleep(0.3)
        return engine.FakeClient(path, progress=progress)

    service = EngineService(jobs, make_client)
    started = time.monotonic()
    service.load(tmp_path / "x.gguf")
    assert time.monotonic() - started < 0.1
    service.unload()
    assert service.state == "empty"
    qtbot.wait(400)
    assert service.state == "empty" and service.client is None


def test_unexpected_errors_become_a_sentence_too():
    assert "KeyError" in sentence(KeyError("x"))
    assert "memory" in sentence(MemoryError())


def test_a_job_tells_its_failure_to_whoever_asked(jobs, qtbot):
    caught = []
    jobs.run(lambda: 1 / 0, caught.append, lambda error, trace: caught.append((error, trace)))
    qtbot.waitUntil(lambda: bool(caught))
    assert isinstance(caught[0][0], ZeroDivisionError) and "1 / 0" in caught[0][1]
    with qtbot.waitSignal(jobs.failed):
        jobs.run(lambda: 1 / 0, caught.append)
