"""Ctrl+F inside a chat, and a hit of the search over all chats marked where it stands."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest


def say(window, text):
    QTest.keyClicks(window.pane.composer.edit, text)
    QTest.keyClick(window.pane.composer.edit, Qt.Key.Key_Return)


def ask_twice(window, qtbot):
    for text in ("A word about herons", "Herons again: HERONS"):
        say(window, text)
        qtbot.waitUntil(lambda: not window.services.replies.running)


def selected(window):
    return window.pane.transcript.pointer.selected_text()


def test_places_are_walked_from_the_newest_and_around(window, qtbot):
    ask_twice(window, qtbot)
    window.act("page.find")
    bar = window.pane.find_bar
    QTest.keyClicks(bar.field, "herons")
    assert bar.found.text() == "3 of 3" and selected(window) == "HERONS"
    QTest.keyClick(bar.field, Qt.Key.Key_Return)
    assert bar.found.text() == "1 of 3" and selected(window) == "herons"
    window.act("page.find_next")
    assert selected(window) == "Herons"
    window.act("page.find_previous")
    assert bar.found.text() == "1 of 3"


def test_nothing_found_is_said_and_escape_leaves(window, qtbot):
    ask_twice(window, qtbot)
    window.act("page.find")
    bar = window.pane.find_bar
    QTest.keyClicks(bar.field, "storks")
    assert bar.found.text() == "Nothing found" and not bar.next.isEnabled()
    window.act("message.stop")
    assert bar.isHidden() and not selected(window)


def test_opening_another_chat_closes_the_bar(window, qtbot):
    ask_twice(window, qtbot)
    window.act("page.find")
    window.act("chat.start")
    assert window.pane.find_bar.isHidden()


def test_a_hit_of_the_search_is_marked_in_the_chat(window, qtbot):
    ask_twice(window, qtbot)
    chat = window.pane.conversation_id
    window.act("chat.start")
    QTest.keyClicks(window.sidebar.search, "word herons")
    qtbot.waitUntil(lambda: any(row.kind == "hit" for row in window.sidebar.model.rows))
    hit = next(row for row in window.sidebar.model.rows if row.message_id is not None)
    window.sidebar.chosen.emit(hit.conversation_id, hit.message_id)
    assert window.pane.conversation_id == chat and selected(window) in ("word", "herons")


def test_hits_of_one_chat_stand_together(window, qtbot):
    ask_twice(window, qtbot)
    window.act("chat.start")
    say(window, "Something else, no birds but one heron")
    qtbot.waitUntil(lambda: not window.services.replies.running)
    QTest.keyClicks(window.sidebar.search, "heron")
    qtbot.waitUntil(lambda: any(row.kind == "hit" for row in window.sidebar.model.rows))
    hits = [row for row in window.sidebar.model.rows if row.kind == "hit"]
    chats = [row.conversation_id for row in hits]
    firsts = [row for row in hits if not row.is_more]
    assert len(firsts) == len(set(chats)) == 2
    assert chats == sorted(chats, key=chats.index)
