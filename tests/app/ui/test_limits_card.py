"""Limits of answers: kept with the chat, in every request, at once in a running answer."""

import pytest

from app.ui.widgets.limits_card import LimitsCard, stop_text, stop_words
from tests.make import window as make


def settle(window, qtbot):
    qtbot.waitUntil(lambda: not window.services.replies.running)


def type_in(card, key, text):
    card.boxes[key].setText(text)
    card.boxes[key].editingFinished.emit()


def test_each_limit_is_kept_and_goes_with_every_request(window, clients, qtbot):
    card = window.sampling.panel.limits
    for key, text in (("n_predict", "1,200"), ("reasoning_budget", "0"), ("seed", "7")):
        type_in(card, key, text)
    type_in(card, "stop", "END, \\n\\n")
    window.pane.send("Hello")
    settle(window, qtbot)
    request = clients.last.requests[-1]
    assert (request.n_predict, request.reasoning_budget) == (1200, 0)
    assert (request.params.seed, request.stop) == (7, ("END", "\n\n"))
    first = window.pane.conversation_id
    window.act("chat.start")
    assert [box.text() for box in card.boxes.values()] == ["", "", "", ""]
    window.chats.open(first)
    texts = [card.boxes[key].text() for key in ("n_predict", "reasoning_budget", "seed", "stop")]
    assert texts == ["1200", "0", "7", "END, \\n\\n"]
    type_in(card, "n_predict", "")
    window.pane.send("Again")
    settle(window, qtbot)
    assert clients.last.requests[-1].n_predict == -1
    stored = window.services.database.conversation(first).params
    assert "n_predict" not in stored and stored["seed"] == 7


def test_a_limit_acts_in_a_running_answer(tmp_path, qtbot):
    clients = make.Clients(tokens_per_second=0, n_prompt=0)
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        qtbot.waitUntil(lambda: bool(window.sampling.panel.cards))
        window.pane.send("Go")
        clients.last.advance(3)
        type_in(window.sampling.panel.limits, "reasoning_budget", "64")
        type_in(window.sampling.panel.limits, "seed", "9")
        clients.last.advance(100)
        settle(window, qtbot)
        changes = window.pane.transcript.messages[-1].record["changes"]
        assert [change["values"] for change in changes] == [{"reasoning_budget": 64}]


@pytest.mark.parametrize("text", ["many", "-3", "1e5", "²", "٣"])
def test_what_is_no_number_changes_nothing(qtbot, text):
    card = LimitsCard()
    qtbot.addWidget(card)
    card.present({"n_predict": 5})
    said = []
    card.changed.connect(lambda key, value: said.append((key, value)))
    type_in(card, "n_predict", text)
    assert card.boxes["n_predict"].text() == "5" and said == []


def test_stored_nonsense_is_no_limit(qtbot):
    card = LimitsCard()
    qtbot.addWidget(card)
    card.present({"n_predict": "5", "seed": True, "reasoning_budget": -4, "stop": [1], "x": 2})
    assert card.values == {}
    type_in(card, "seed", "9" * 40)
    assert card.values == {"seed": 2**32 - 2}


@pytest.mark.parametrize("words", [["END"], ["\n", "a, b"], ["\\n", "\t"], [" x "[1:], "y\\"]])
def test_stop_words_are_read_as_they_are_written(words):
    assert stop_words(stop_text(words)) == words
