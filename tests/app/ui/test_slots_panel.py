"""The Slots tab: what each slot holds, refreshed while answers run, and the acts by hand."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog

from tests.make import window as make


def say(pane, text):
    QTest.keyClicks(pane.composer.edit, text)
    QTest.keyClick(pane.composer.edit, Qt.Key.Key_Return)


def test_cards_follow_the_engine(tmp_path, qtbot):
    clients = make.Clients(tokens_per_second=0, n_prompt=20, n_cached=12)
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        window.inspector.show_tab("slots")
        cards = window.slots.panel.cards
        assert [card.state.text() for card in cards] == ["empty"] * 4
        say(window.pane, "Why is the sky blue?")
        clients.last.advance(6)
        qtbot.waitUntil(lambda: cards[0].state.text().startswith("writing"))
        assert cards[0].title.full_text() == "Why is the sky blue?"
        assert "12 of 20 from memory" in cards[0].tokens.text()
        assert not cards[0].buttons["erase"].isEnabled()
        clients.last.advance(200)
        qtbot.waitUntil(lambda: cards[0].state.text() == "ready")
        assert not window.slots._timer.isActive()
        cards[0].buttons["erase"].click()
        qtbot.waitUntil(lambda: cards[0].state.text() == "empty")
        assert "Slot 1" in window.toast.sentence.text()


def test_save_asks_for_a_file_and_restore_reads_it(window, qtbot, tmp_path):
    say(window.pane, "Hello")
    qtbot.waitUntil(lambda: not window.services.replies.running)
    file = tmp_path / "memory.safetensors"
    window.slots.act("save", 0)
    dialog = window.findChild(QFileDialog)
    with qtbot.waitSignal(window.services.slots.done):
        dialog.fileSelected.emit(str(file))
    dialog.close()
    assert file.exists()
    with qtbot.waitSignal(window.services.slots.done):
        window.services.slots.restore(1, file)
    assert window.slots.panel.cards[1].fill.value() > 0


def test_a_double_click_on_a_card_shows_its_chat(window, qtbot):
    say(window.pane, "Hello")
    qtbot.waitUntil(lambda: not window.services.replies.running)
    chat = window.pane.conversation_id
    window.act("chat.start")
    window.slots.panel.cards[0].title.double_clicked.emit()
    assert window.pane.conversation_id == chat


def test_the_hover_words_of_the_list_carry_numbers(window, qtbot):
    say(window.pane, "Hello")
    qtbot.waitUntil(lambda: not window.services.replies.running)
    model = window.sidebar.model
    index = model.index(model.row_of(window.pane.conversation_id))
    title, words = model.data(index, int(Qt.ItemDataRole.ToolTipRole)).split("\n")
    assert title == "Hello" and words.startswith("ready · ") and words.endswith(" tokens · 1 MB")
    assert model.rows[index.row()].lamp == "ready"
