"""What an answer must be: chosen in the panel, checked as it is typed, kept with the chat."""

import threading

import engine
from tests.make import window as make


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


def test_another_kind_shows_at_once_what_to_type(window, qtbot, monkeypatch):
    gate = threading.Event()
    monkeypatch.setattr(engine, "check_constraint", lambda *_: gate.wait(5) and "", raising=False)
    card = window.sampling.panel.grammar
    choose(card, "gbnf")
    assert "root" in card.verdict.text()
    qtbot.waitUntil(lambda: card.verdict.text() == "Checking…")
    gate.set()
    qtbot.waitUntil(lambda: "root" in card.verdict.text())


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


def test_an_unfinished_text_survives_another_chat(window, qtbot):
    card = window.sampling.panel.grammar
    window.pane.send("Hello")
    settle(window, qtbot)
    first = window.pane.conversation_id
    choose(card, "gbnf")
    card.edit.setPlainText('root ::= "yes" | nothing')
    window.act("chat.start")
    assert card.kind.currentData() == "" and card.edit.toPlainText() == ""
    window.chats.open(first)
    assert card.kind.currentData() == "gbnf" and "nothing" in card.edit.toPlainText()
    qtbot.waitUntil(lambda: "nothing" in card.verdict.text())
    assert kept(window) == {}
    card.edit.setPlainText('root ::= "yes"')
    qtbot.waitUntil(lambda: kept(window).get("text") == 'root ::= "yes"')
    database = window.services.database
    qtbot.waitUntil(lambda: database.conversation(first).params["constraint_draft"] == {})


def test_an_unfinished_text_of_an_empty_page_waits_there(window, qtbot):
    card = window.sampling.panel.grammar
    window.pane.send("Hello")
    settle(window, qtbot)
    first = window.pane.conversation_id
    window.act("chat.start")
    choose(card, "regex")
    card.edit.setPlainText("[a-z")
    window.chats.open(first)
    assert card.kind.currentData() == ""
    window.act("chat.start")
    assert card.kind.currentData() == "regex" and card.edit.toPlainText() == "[a-z"


def test_an_unfinished_text_survives_a_restart(tmp_path, qtbot):
    def opened():
        return make.window(tmp_path, make.Clients())

    def ready(window):
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        qtbot.waitUntil(lambda: bool(window.sampling.panel.cards))

    with opened() as window:
        ready(window)
        card = window.sampling.panel.grammar
        choose(card, "json")
        qtbot.waitUntil(lambda: kept(window).get("kind") == "json")
        choose(card, "json_schema")
        card.edit.setPlainText('{"type": "obj')
    with opened() as window:
        ready(window)
        card = window.sampling.panel.grammar
        assert card.kind.currentData() == "json_schema"
        assert card.edit.toPlainText() == '{"type": "obj' and kept(window)["kind"] == "json"


def test_a_text_being_typed_is_not_replaced_by_what_happens(window, qtbot):
    card = window.sampling.panel.grammar
    choose(card, "regex")
    card.edit.setPlainText("(a|")
    cursor = card.edit.textCursor()
    cursor.movePosition(cursor.MoveOperation.End)
    card.edit.setTextCursor(cursor)
    window.pane.send("Hello")
    settle(window, qtbot)
    window.sampling.show_values()
    assert card.edit.toPlainText() == "(a|" and card.edit.textCursor().position() == 3


def test_a_verdict_that_comes_after_the_chat_was_left_is_passed_by(window, qtbot, monkeypatch):
    gate = threading.Event()
    monkeypatch.setattr(engine, "check_constraint", lambda *_: gate.wait(5) and "", raising=False)
    card = window.sampling.panel.grammar
    window.pane.send("Hello")
    settle(window, qtbot)
    choose(card, "json")
    window.act("chat.start")
    gate.set()
    qtbot.wait(100)
    assert kept(window) == {}


def test_damaged_constraints_are_none(window):
    card = window.sampling.panel.grammar
    for damaged in (7, [], {"kind": 7}, {"kind": "regex", "text": 9}, {"kind": "of tomorrow"}):
        card.present(damaged, damaged)
        assert card.kind.currentData() == ""
