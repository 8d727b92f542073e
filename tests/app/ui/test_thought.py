"""Reasoning is folded above the answer, streaming or stored, and left out of later context."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from tests.make import window as make

REPLY = "<think>\nFirst I count them all.\n</think>\n\nThere are **ten**."


def say(window, text):
    QTest.keyClicks(window.pane.composer.edit, text)
    QTest.keyClick(window.pane.composer.edit, Qt.Key.Key_Return)


def settle(window, qtbot):
    qtbot.waitUntil(lambda: not window.services.replies.running)


def last_view(window):
    transcript = window.pane.transcript
    return transcript.view_of(transcript.messages[-1].id)


def shown(view):
    return "\n".join(block.text() for block in view.views)


def test_a_thought_streams_into_a_fold(tmp_path, qtbot):
    clients = make.Clients(reply=REPLY, tokens_per_second=0, n_prompt=0)
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        say(window, "How many?")
        clients.last.advance(4)
        qtbot.waitUntil(lambda: last_view(window).thought is not None)
        view = last_view(window)
        assert view.thought.fold.text().startswith("Thinking…") and not view.views
        clients.last.advance(200)
        settle(window, qtbot)
        assert view.thought.fold.text().startswith("Thought") and shown(view) == "There are ten."
        assert view.thought.thought().strip() == "First I count them all."
        record = window.pane.transcript.messages[-1].record
        assert record["thought_s"] >= 0 and window.pane.transcript.messages[-1].text == REPLY


def test_the_fold_opens_and_closes_and_the_page_makes_room(tmp_path, qtbot):
    clients = make.Clients(reply=REPLY)
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        say(window, "How many?")
        settle(window, qtbot)
        view = last_view(window)
        before = view.needed_height()
        view.thought.fold.click()
        assert view.thought.text.toPlainText() == "First I count them all."
        assert view.needed_height() > before and view.height() == view.needed_height()
        view.thought.fold.click()
        assert view.needed_height() == before
        window.change_setting("theme", "dark")
        assert shown(last_view(window)) == "There are ten."


def test_a_stored_thought_says_how_long_it_took(window, qtbot):
    say(window, "Hello")
    settle(window, qtbot)
    message = window.pane.transcript.messages[-1]
    record = {**message.record, "thought_s": 12.3}
    window.services.database.update_message(message.id, text=REPLY, record=record)
    window.pane.open(window.pane.conversation_id)
    assert last_view(window).thought.fold.text().startswith("Thought for 12 s")


def test_a_thought_that_the_template_began_is_folded_when_it_ends(tmp_path, qtbot):
    clients = make.Clients(reply="I count. </think>\n\nTen.", tokens_per_second=0, n_prompt=0)
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        say(window, "How many?")
        clients.last.advance(2)
        qtbot.waitUntil(lambda: bool(last_view(window).views))
        clients.last.advance(200)
        settle(window, qtbot)
        window.pane.open(window.pane.conversation_id)
        view = last_view(window)
        assert shown(view) == "Ten." and view.thought.thought().strip() == "I count."


def test_earlier_thoughts_are_left_out_unless_wanted(tmp_path, qtbot):
    clients = make.Clients(reply=REPLY)
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        say(window, "How many?")
        settle(window, qtbot)
        say(window, "Sure?")
        settle(window, qtbot)
        assert clients.last.requests[-1].prompt[1]["content"] == "There are **ten**."
        window.change_setting("keep_reasoning", True)
        say(window, "Really?")
        settle(window, qtbot)
        assert clients.last.requests[-1].prompt[1]["content"] == REPLY


def test_copy_takes_the_answer_without_the_thought(tmp_path, qtbot):
    from PySide6.QtGui import QGuiApplication

    clients = make.Clients(reply=REPLY)
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        say(window, "How many?")
        settle(window, qtbot)
        window.act("message.copy_answer")
        assert QGuiApplication.clipboard().text() == "There are **ten**."


def test_answer_now_ends_the_thought_and_is_noted(tmp_path, qtbot):
    clients = make.Clients(reply=REPLY, tokens_per_second=0, n_prompt=0)
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        say(window, "How many?")
        clients.last.advance(4)
        qtbot.waitUntil(lambda: last_view(window).thought is not None)
        view = last_view(window)
        answer = view.thought.answer
        assert answer.isVisibleTo(view) and answer.text() == "Answer now"
        assert view.thought.x() == view.text_left()
        assert answer.geometry().left() >= view.thought.fold.geometry().right()
        answer.click()
        assert not answer.isEnabled()
        clients.last.advance(200)
        settle(window, qtbot)
        assert answer.isHidden()
        (change,) = window.pane.transcript.messages[-1].record["changes"]
        assert change["values"] == {"reasoning_budget": 0} and change["at"] > 0


def test_nothing_offers_to_end_a_thought_that_is_over(window, qtbot):
    say(window, "Hello")
    settle(window, qtbot)
    message = window.pane.transcript.messages[-1]
    window.services.database.update_message(message.id, text=REPLY)
    window.pane.open(window.pane.conversation_id)
    assert last_view(window).thought.answer.isHidden()


def test_a_thought_that_the_template_opened_is_folded_from_its_first_word(tmp_path, qtbot):
    reply = "I count. </think>\n\nTen."
    clients = make.Clients(reply=reply, tokens_per_second=0, n_prompt=24, opens_thought=True)
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        say(window, "How many?")
        clients.last.advance(2)
        qtbot.waitUntil(lambda: last_view(window).reading is not None)
        assert last_view(window).thought is None  # the prompt is still being read
        clients.last.advance(4)
        qtbot.waitUntil(lambda: last_view(window).thought is not None)
        view = last_view(window)
        assert view.thought.fold.text().startswith("Thinking…") and not view.views
        assert view.thought.answer.isVisibleTo(view)
        window.pane.stop()
        settle(window, qtbot)
        half = window.pane.transcript.messages[-1]
        assert half.text.startswith("<think>\nI") and half.state == "cancelled"
        window.pane.acts.act_on_last("message.continue")
        clients.last.advance(3)
        assert clients.last.requests[-1].prompt[-1]["content"] == half.text
        assert window.services.database.message(half.id).text.count("<think>") == 1
        window.pane.stop()
        settle(window, qtbot)
        window.pane.open(window.pane.conversation_id)
        assert last_view(window).thought is not None and not last_view(window).views
