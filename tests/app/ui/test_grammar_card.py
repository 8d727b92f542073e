"""What an answer must be: chosen in the panel, checked as it is typed, kept with the chat."""

import threading

import engine


def choose(card, kind):
    card.kind.setCurrentIndex(card.kind.findData(kind))
    card.kind.activated.emit(card.kind.currentIndex())


def kept(window):
    return window.pane.params.get("constraint", {})


def settle(window, qtbot):
    qtbot.waitUntil(lambda: not window.services.replies.running)


def test_json_needs_no_text_and_goes_with_the_next_request(window, clients, qtbot):
    card = window.sampling.panel.grammar
    assert card.edit.isHidden()
    choose(card, "json")
    qtbot.waitUntil(lambda: kept(window) == {"kind": "json", "text": ""})
    assert card.edit.isHidden()
    window.pane.send("Hello")
    settle(window, qtbot)
    assert clients.last.requests[-1].json_schema is True
    choose(card, "")
    qtbot.waitUntil(lambda: kept(window) == {})
    window.pane.send("Hello")
    settle(window, qtbot)
    assert clients.last.requests[-1].json_schema is None


def test_an_unfinished_text_says_why_and_the_last_good_one_holds(window, clients, qtbot):
    card = window.sampling.panel.grammar
    choose(card, "gbnf")
    assert not card.edit.isHidden()
    card.edit.setPlainText('root ::= "yes" | "no"')
    qtbot.waitUntil(lambda: kept(window).get("kind") == "gbnf")
    card.edit.setPlainText('root ::= "yes" | nothing')
    qtbot.waitUntil(lambda: "nothing" in card.verdict.text())
    assert "The last good one is kept." in card.verdict.text()
    window.pane.send("Well?")
    settle(window, qtbot)
    assert clients.last.requests[-1].grammar == 'root ::= "yes" | "no"'
    stored = window.services.database.conversation(window.pane.conversation_id)
    assert stored.params["constraint"]["text"] == 'root ::= "yes" | "no"'


def test_the_check_runs_beside_the_window(window, qtbot, monkeypatch):
    threads = []

    def slow(kind, text):
        threads.append(threading.current_thread())
        return "No."

    monkeypatch.setattr(engine, "check_constraint", slow, raising=False)
    card = window.sampling.panel.grammar
    choose(card, "regex")
    qtbot.waitUntil(lambda: card.verdict.text() == "No.")
    assert threading.main_thread() not in threads and kept(window) == {}


def test_each_chat_keeps_its_own_and_a_late_verdict_is_passed_by(window, qtbot):
    card = window.sampling.panel.grammar
    choose(card, "json")
    qtbot.waitUntil(lambda: kept(window) != {})
    window.pane.send("Hello")
    settle(window, qtbot)
    first = window.pane.conversation_id
    window.act("chat.start")
    assert card.kind.currentData() == "" and kept(window) == {}
    card.tell("regex", "a+", "")
    assert kept(window) == {}
    window.chats.open(first)
    assert card.kind.currentData() == "json"
