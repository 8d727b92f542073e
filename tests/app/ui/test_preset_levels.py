"""Presets at three levels: everywhere, with one model, in one chat, and where a value is from."""

from types import SimpleNamespace

from PySide6.QtWidgets import QMenu

from app.services.preset_levels import MODELS_OWN
from tests.make import window as make


def card(panel, name):
    return next(c for c in panel.cards if c.sampler.name == name)


def source(panel, name):
    return card(panel, name).source.full_text()


def settle(window, qtbot):
    qtbot.waitUntil(lambda: not window.services.replies.running)


def set_number(panel, name, text):
    box = card(panel, name).rows[0].box
    box.setText(text)
    box.editingFinished.emit()


def test_each_value_says_where_it_comes_from(window):
    panel = window.sampling.panel
    temperature = card(panel, "temperature")
    assert temperature.source.full_text() == "Balanced"
    assert "Balanced, everywhere" in temperature.rows[0].slider.toolTip()
    set_number(panel, "temperature", "1.7")
    assert temperature.source.full_text() == "this chat"
    assert "this chat" in temperature.rows[0].slider.accessibleDescription()
    assert source(panel, "top_k") == "Balanced" and source(panel, "penalties") == "default"


def test_a_value_moved_by_hand_to_that_of_the_preset_is_still_the_chats_own(window, qtbot):
    panel = window.sampling.panel
    set_number(panel, "temperature", "1.7")
    set_number(panel, "temperature", "0.8")
    assert source(panel, "temperature") == "this chat"
    window.pane.send("Hello")
    settle(window, qtbot)
    stored = window.services.database.conversation(window.pane.conversation_id).params
    assert stored["sources"]["temperature"] == ["chat", ""]
    assert stored["sources"]["top_k"] == ["everywhere", "Balanced"]
    record = window.pane.transcript.messages[-1].record
    assert record["sources"] == stored["sources"]


def test_a_double_click_brings_the_default_back(window):
    panel = window.sampling.panel
    row = card(panel, "top_k").rows[0]
    set_number(panel, "top_k", "7")
    row.slider.reset.emit()
    assert row.value == 40 and source(panel, "top_k") == "default"
    assert "top_k" not in window.pane.params["sources"]


def test_sliders_behind_the_fold_have_a_source_of_their_own(window):
    panel = window.sampling.panel
    penalties = card(panel, "penalties")
    penalties.switch_on()
    penalties.more.click()
    look_back = penalties.rows[1]
    look_back.box.setText("128")
    look_back.box.editingFinished.emit()
    assert penalties._sources["repeat_last_n"].full_text() == "this chat"
    assert penalties.source.full_text() == "default"


def test_a_preset_of_the_model_wins_over_the_one_of_all(window, qtbot):
    panel = window.sampling.panel
    precise = window.services.presets.find("precise").sampling
    creative = window.services.presets.find("creative").sampling
    panel.presets.level_chosen.emit("everywhere", "creative")
    assert window.pane.params["sampling"] == creative
    panel.presets.level_chosen.emit("model", "precise")
    assert window.pane.params["sampling"] == {**creative, **precise}
    assert source(panel, "temperature") == "Precise"
    window.pane.send("Hello")
    settle(window, qtbot)
    old = window.pane.conversation_id
    panel.presets.level_chosen.emit("model", "")
    kept = window.services.database.conversation(old).params
    assert kept["sampling"] == {**creative, **precise}  # a chat keeps what it began with
    assert source(panel, "temperature") == "Precise"  # and knows from where
    window.act("chat.start")
    assert window.pane.params["sampling"] == creative
    window.load_model(window.services.paths.stored / "other.gguf")
    qtbot.waitUntil(lambda: window.services.engine.state == "ready")
    panel.presets.level_chosen.emit("model", "precise")
    window.load_model(window.services.paths.stored / "third.gguf")
    qtbot.waitUntil(lambda: window.services.engine.file_name() == "third.gguf")
    assert window.pane.params["sampling"] == creative


def test_a_preset_of_a_chat_is_saved_by_name_and_changes_no_other(window):
    panel = window.sampling.panel
    before = window.services.settings["preset"]
    panel.presets.buttons["precise"].click()
    assert window.services.settings["preset"] == before
    assert source(panel, "temperature") == "Precise"
    assert window.pane.params["sources"]["temperature"] == ["chat", "Precise"]
    window.sampling.store("Letters")
    panel.presets.level_chosen.emit("everywhere", "letters")
    assert source(panel, "temperature") == "Precise"  # this page was changed by hand
    window.pane.open(None)
    window.sampling.show_values()
    assert source(panel, "temperature") == "Letters"
    menu = QMenu()
    made = panel.presets.level_menu("everywhere", "New chats", menu)
    marked = [action.text() for action in made.actions() if action.isChecked()]
    assert marked == ["Letters"]


def test_the_keyboard_stays_on_a_preset_while_other_things_happen(window, qtbot):
    shown = window.sampling.panel.presets.buttons["creative"]
    window.activateWindow()
    shown.setFocus()
    qtbot.waitUntil(shown.hasFocus)
    window.sampling.show_values()
    assert window.sampling.panel.presets.buttons["creative"] is shown and shown.hasFocus()


def test_a_preset_is_deleted_and_comes_back(window):
    window.sampling.store("Letters")
    preset = window.services.presets.find("letters")
    window.sampling.panel.presets.deletion_wanted.emit(preset)
    assert window.services.presets.find("letters") is None
    menu = window.sampling.panel.presets.menu()
    assert "Letters" not in [action.text() for action in menu.actions()]
    window.toast.undo.click()
    assert window.services.presets.find("letters").sampling == preset.sampling


def test_the_models_own_values_are_a_preset(tmp_path, qtbot):
    own = {"temperature": 0.6, "top_k": 20}
    clients = make.Clients(model_info=SimpleNamespace(name="Own", sampling=own))
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        qtbot.waitUntil(lambda: bool(window.sampling.panel.cards))
        panel = window.sampling.panel
        shown = panel.presets.buttons[MODELS_OWN]
        assert shown.isEnabled() and shown.text() == "Model's own"
        assert source(panel, "temperature") == "Model's own"
        assert card(panel, "temperature").rows[0].value == 0.6
        panel.presets.buttons["precise"].click()
        assert not shown.isChecked()
        shown.click()
        assert shown.isChecked() and window.pane.params["sampling"]["top_k"] == 20
        assert window.pane.params["sources"]["top_k"] == ["chat", "Model's own"]
        panel.presets.level_chosen.emit("model", "")
        window.services.engine.unload()
        assert not panel.presets.buttons[MODELS_OWN].isEnabled()


def test_values_that_are_no_numbers_show_the_default(window):
    panel = window.sampling.panel
    panel.show_values({"temperature": "hot", "top_k": float("nan"), "samplers": 7})
    assert card(panel, "temperature").rows[0].value == 0.8
    assert card(panel, "top_k").rows[0].value == 40
    assert panel.order.names == panel.order.default


def test_a_long_name_of_a_preset_does_not_push_the_numbers_out(window, qtbot):
    panel = window.sampling.panel
    name = "A preset with a remarkably long name that goes on and on"
    window.services.presets.save(name, {"temperature": 0.5})
    window.sampling._levels.read_again()
    window.sampling.show_values()
    window.sampling._on_preset_chosen(window.services.presets.all()[-1])
    window.columns.splitter.setSizes([200, 960, 280])
    area = window.inspector._areas["sampling"]
    qtbot.waitUntil(lambda: panel.width() <= area.viewport().width())
    shown = card(panel, "temperature")
    assert shown.source.full_text() == name and shown.source.text().endswith("…")
    right = shown.rows[0].box.mapTo(panel, shown.rows[0].box.rect().topRight()).x()
    assert right < area.viewport().width()


def test_the_dot_stays_when_everything_is_built_again(window):
    set_number(window.sampling.panel, "temperature", "1.7")
    window.set_zoom(1.5)
    title = card(window.sampling.panel, "temperature").title
    assert title.is_marked
    assert title.sizeHint().width() > title.fontMetrics().horizontalAdvance(title.text()) + 10
    window.set_zoom(1.0)
