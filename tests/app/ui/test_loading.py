"""A model on its way: stages where one looks, refusals that leave the present model loaded."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

import engine
from app.services.engine_service import EngineService
from app.services.jobs import Jobs
from tests.make import window as make


def say(window, text):
    QTest.keyClicks(window.pane.composer.edit, text)
    QTest.keyClick(window.pane.composer.edit, Qt.Key.Key_Return)


def settle(window, qtbot):
    qtbot.waitUntil(lambda: not window.services.replies.running)


def refuse(path):
    raise engine.UnsupportedModelError("This version cannot run the architecture “x”.")


def test_every_stage_that_the_engine_reports_has_words_and_the_bar_never_goes_back(qapp, qtbot):
    service = EngineService(Jobs(), make.Clients())
    told = ("map", "compile kernels", "read", "compile kernels", "vocabulary", "context")
    seen, words = [], []
    service.progressed.connect(lambda: (seen.append(service.done), words.append(service.stage)))
    for stage in told:
        for done in (0.0, 0.5, 1.0):
            service._on_progress(stage, done)
            service._drain()
    assert seen == sorted(seen) and seen[-1] == 1.0
    assert not set(words) & set(told)


def test_a_load_is_shown_on_the_page_and_where_an_answer_waits(window, qtbot):
    pane, service = window.pane, window.services.engine
    service.state, service.stage, service.done = "loading", "Compiling for this processor", 0.4
    service.client = None
    service.changed.emit()
    service.progressed.emit()
    assert pane.empty.progress.isVisible() and pane.empty.progress.value() == 400
    assert pane.empty.stage.text() == "Compiling for this processor"
    say(window, "Hello")
    reading = pane.transcript.view_of(pane.transcript.messages[-1].id).reading
    assert "Compiling for this processor" in reading.sentence() and reading.done() == 0.4
    window.services.chats.stop(pane.conversation_id)
    settle(window, qtbot)
    service.state = "empty"


def test_a_file_that_cannot_be_run_leaves_the_present_model_loaded(
    window, clients, qtbot, tmp_path
):
    service = window.services.engine
    service._check = refuse
    window.load_model(tmp_path / "wonder.gguf")
    qtbot.waitUntil(lambda: service.refusal is not None)
    assert service.state == "ready" and len(clients.made) == 1
    card = window.pane.engine.card
    assert "wonder" in card.accessibleName() and "architecture" in card.sentence.text()
    assert window.services.settings["last_model"].endswith("fake.gguf")
    say(window, "Still there?")
    settle(window, qtbot)
    assert window.pane.transcript.messages[-1].text
    card.remedy.emit("keep")
    assert window.pane.engine.card is None and service.refusal is None


def test_a_sound_file_takes_the_place_and_the_refusal_goes(window, clients, qtbot, tmp_path):
    service = window.services.engine
    service._check = refuse
    window.load_model(tmp_path / "wonder.gguf")
    qtbot.waitUntil(lambda: service.refusal is not None)
    service._check = lambda path: None
    window.load_model(tmp_path / "good.gguf")
    qtbot.waitUntil(lambda: service.state == "ready" and len(clients.made) == 2)
    assert service.refusal is None and window.pane.engine.card is None
    assert window.services.settings["last_model"].endswith("good.gguf")


def test_the_status_line_names_what_the_kernels_are_compiled_for(window, qtbot):
    level = engine.cpu_level()
    qtbot.waitUntil(lambda: window.status.device.text().endswith(level))


def test_what_is_left_shrinks_while_an_answer_is_written(tmp_path, qtbot):
    clients = make.Clients(tokens_per_second=0, n_prompt=96, n_batch=96)
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        assert window.pane.composer.figures.text() == "4,096 left"
        say(window, "Go")
        clients.last.advance(1)
        qtbot.waitUntil(lambda: window.pane.composer.figures.text() == "4,000 left")
        clients.last.advance(6)
        qtbot.waitUntil(lambda: window.pane.composer.figures.text() < "4,000 left")
        assert window.pane.header.ring.part > 96 / 4096


def test_an_answer_that_is_continued_counts_all_that_was_written(tmp_path, qtbot):
    clients = make.Clients(tokens_per_second=0, n_prompt=0)
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        say(window, "Go")
        clients.last.advance(6)
        window.act("message.stop")
        settle(window, qtbot)
        first = window.pane.transcript.messages[-1]
        n_first = first.record["timings"]["n_generated"]
        assert n_first > 0
        window.act("message.continue")
        view = window.pane.transcript.view_of(first.id)
        clients.last.reply = "and so on"
        clients.last.advance(50)
        settle(window, qtbot)
        whole = window.pane.transcript.messages[-1]
        assert whole.record["timings"]["n_generated"] > n_first
        assert whole.record["n_used"] == whole.record["timings"]["n_generated"] - n_first
        shown = "\n".join(block.text() for block in view.views)
        window.pane.open(window.pane.conversation_id)
        again = window.pane.transcript.view_of(first.id)
        assert shown == "\n".join(block.text() for block in again.views)


@pytest.mark.parametrize("name", ["größe.gguf", "Модель.gguf", "模型 日本.gguf"])
def test_the_chip_carries_names_in_any_script(window, qtbot, tmp_path, name):
    window.load_model(tmp_path / name)
    qtbot.waitUntil(lambda: window.services.engine.state == "ready")
    assert window.pane.header.chip.full_text() == name.removesuffix(".gguf")
