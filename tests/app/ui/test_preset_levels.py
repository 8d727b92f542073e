"""Presets at three levels: everywhere, with one model, in one chat, and where a value is from."""

from PySide6.QtWidgets import QMenu


def card(panel, name):
    return next(c for c in panel.cards if c.sampler.name == name)


def test_each_value_says_where_it_comes_from(window):
    panel = window.sampling.panel
    temperature = card(panel, "temperature")
    balanced = window.services.presets.find("balanced")
    assert temperature.source.text() == ("Balanced" if balanced.sampling else "default")
    temperature.rows[0].box.setText("1.7")
    temperature.rows[0].box.editingFinished.emit()
    assert temperature.source.text() == "this chat"
    assert "this chat" in temperature.rows[0].slider.accessibleDescription()


def test_a_preset_of_the_model_wins_over_the_one_of_all(window, qtbot):
    panel = window.sampling.panel
    precise = window.services.presets.find("precise").sampling
    creative = window.services.presets.find("creative").sampling
    panel.level_chosen.emit("everywhere", "creative")
    assert window.pane.params["sampling"] == creative
    panel.level_chosen.emit("model", "precise")
    assert window.pane.params["sampling"] == {**creative, **precise}
    assert card(panel, "temperature").source.text() == "Precise"
    window.pane.send("Hello")
    qtbot.waitUntil(lambda: not window.services.replies.running)
    old = window.pane.conversation_id
    panel.level_chosen.emit("model", "")
    kept = window.services.database.conversation(old).params["sampling"]
    assert kept == {**creative, **precise}  # a chat keeps what it began with
    window.act("chat.start")
    assert window.pane.params["sampling"] == creative
    window.load_model(window.services.paths.stored / "other.gguf")
    qtbot.waitUntil(lambda: window.services.engine.state == "ready")
    panel.level_chosen.emit("model", "precise")
    window.load_model(window.services.paths.stored / "third.gguf")
    qtbot.waitUntil(lambda: window.services.engine.file_name() == "third.gguf")
    assert window.pane.params["sampling"] == creative


def test_a_preset_of_a_chat_is_saved_by_name_and_changes_no_other(window):
    panel = window.sampling.panel
    before = window.services.settings["preset"]
    panel.preset_buttons["precise"].click()
    assert window.services.settings["preset"] == before
    window.sampling.store("Letters")
    panel.level_chosen.emit("everywhere", window.services.presets.all()[-1].id)
    assert card(panel, "temperature").source.text() == "Letters"
    menu = QMenu()
    made = panel.level_menu("everywhere", "New chats", menu)
    marked = [action.text() for action in made.actions() if action.isChecked()]
    assert marked == ["Letters"]


def test_damaged_choices_are_none(window):
    window.services.settings["model_presets"] = "[1"
    window.sampling.panel.level_chosen.emit("model", "precise")
    assert '"precise"' in window.services.settings["model_presets"]
