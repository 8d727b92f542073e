"""The chain as cards: put in order by hand and by keys, neutralized, live in a running answer."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

import engine
from app.ui.theme import theme
from app.ui.widgets.sampling_panel import SamplingPanel
from app.ui.widgets.value_row import NEUTRAL
from engine.sampling.samplers import SAMPLING_SETTINGS
from tests.make import window as make

DEFAULT = list(engine.SamplingParams().samplers)


@pytest.fixture
def panel(qtbot):
    made = SamplingPanel(SAMPLING_SETTINGS)
    qtbot.addWidget(made)
    made.resize(360, 1400)
    made.show()
    made.show_values({})
    qtbot.waitExposed(made)
    made.layout().activate()
    return made


def card(panel, name):
    return next(c for c in panel.cards if c.sampler.name == name)


def shown(panel):
    used = [c for c in panel.cards if not c.isHidden()]
    return [c.sampler.name for c in sorted(used, key=lambda c: c.y())]


def test_the_cards_stand_in_the_engines_order(panel):
    assert panel.order.default == DEFAULT
    assert shown(panel) == ["top_k", "top_p", "min_p", "temperature"]
    panel.show_values({"samplers": ["temperature", "top_k", "min_p", "top_p"]})
    panel.layout().activate()
    assert shown(panel) == ["temperature", "top_k", "min_p", "top_p"]


def test_alt_and_an_arrow_move_a_card_past_the_next_in_use(panel, qtbot):
    said = []
    panel.changed.connect(said.append)
    moved = card(panel, "temperature")
    moved.rows[0].slider.setFocus()
    panel.activateWindow()
    qtbot.waitUntil(moved.rows[0].slider.hasFocus)
    QTest.keyClick(moved.rows[0].slider, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    expected = [name for name in DEFAULT if name != "temperature"]
    expected.insert(expected.index("min_p"), "temperature")
    assert said == [{"samplers": expected}]
    assert moved.rows[0].value == pytest.approx(0.8) and moved.rows[0].slider.hasFocus()
    panel.layout().activate()
    assert shown(panel) == ["top_k", "top_p", "temperature", "min_p"]
    panel.order.step(card(panel, "min_p"), 1)
    assert len(said) == 1  # the last one stays the last
    panel.order.step(card(panel, "top_k"), 1)
    assert said[-1]["samplers"].index("top_k") == said[-1]["samplers"].index("top_p") + 1
    assert engine.SamplingParams(**said[-1]).samplers == tuple(said[-1]["samplers"])


def test_a_card_is_dragged_to_another_place(panel):
    said = []
    panel.changed.connect(said.append)
    moved = card(panel, "temperature")
    start = moved.title.geometry().center()
    QTest.mousePress(moved, Qt.MouseButton.LeftButton, pos=start)
    goal = card(panel, "top_k").geometry().top() + 2
    QTest.mouseMove(moved, start - QPoint(0, 40))
    for _ in range(6):
        QTest.mouseMove(moved, QPoint(start.x(), goal - moved.y()))
    assert said == []
    QTest.mouseRelease(moved, Qt.MouseButton.LeftButton, pos=start)
    assert len(said) == 1 and shown(panel)[0] == "temperature"
    order = said[0]["samplers"]
    assert order.index("temperature") == order.index("top_k") - 1
    QTest.mouseClick(moved, Qt.MouseButton.LeftButton, pos=start)
    assert len(said) == 1  # a click is no drag


def test_neutralize_leaves_no_stage_that_does_anything(panel):
    said = []
    panel.show_values({"dry_multiplier": 0.8, "mirostat": 2, "xtc_probability": 0.5})
    panel.changed.connect(said.append)
    panel.presets.neutral.click()
    params = engine.SamplingParams(**panel.values)
    assert all(row.is_off(params) for row in SAMPLING_SETTINGS if row.name != "adaptive_p")
    assert len(said) == 1 and "samplers" not in said[0]


def test_every_slider_explains_itself_and_marks_what_differs(panel):
    from PySide6.QtWidgets import QLabel

    for each in panel.cards:
        words = [shown.text() for shown in each.findChildren(QLabel)]
        wanted = [each.sampler.help, *(row.parameter.help for row in each.rows[1:])]
        assert all(help in words for help in wanted), each.sampler.name
    temperature = card(panel, "temperature")
    assert not temperature.title.is_marked
    panel.show_values({"dynatemp_range": 0.5})
    marked = [title.text() for title, _ in temperature._titles if title.is_marked]
    assert marked == ["Range"] and temperature.title.is_marked
    assert "changed" in temperature.title.accessibleName()
    picture = temperature.title.grab().toImage()
    colours = {
        picture.pixelColor(x, picture.height() // 2 + 1).name() for x in range(picture.width())
    }
    assert theme.color("accent").name() in colours


def test_the_default_is_marked_on_each_slider(panel):
    panel.show_values({"top_k": 160})
    slider = card(panel, "top_k").rows[0].slider
    picture = slider.grab().toImage()
    x = round(slider._x(40))
    below = range(picture.height() // 2 + 4, picture.height())
    assert theme.color("soft").name() in {picture.pixelColor(x, y).name() for y in below}
    other = {picture.pixelColor(round(slider._x(90)), y).name() for y in below}
    assert theme.color("soft").name() not in other


def test_adaptive_p_takes_its_place_in_the_chain_with_its_target(panel):
    target = card(panel, "adaptive_p").rows[0]
    target.box.setText("0.3")
    target.box.editingFinished.emit()
    assert panel.values["samplers"] == [*DEFAULT, "adaptive_p"]
    card(panel, "adaptive_p").off.click()
    assert panel.values["samplers"] == DEFAULT


def test_a_preset_is_in_force_only_with_its_order(window):
    panel = window.sampling.panel
    panel.presets.buttons["precise"].click()
    assert panel.presets.buttons["precise"].isChecked()
    panel.order.step(panel.cards[-1], -1)
    assert not panel.presets.buttons["precise"].isChecked()
    assert window.pane.params["sampling"]["samplers"][-1] == "top_k"


def test_the_order_changes_the_next_token_of_a_running_answer(tmp_path, qtbot):
    clients = make.Clients(tokens_per_second=0)
    with make.window(tmp_path, clients) as window:
        qtbot.waitUntil(lambda: window.services.engine.state == "ready")
        qtbot.waitUntil(lambda: bool(window.sampling.panel.cards))
        window.pane.send("Go")
        clients.last.advance(6)
        panel = window.sampling.panel
        panel.order.step(panel.cards[-1], -1)
        reply = next(iter(window.services.replies.running.values()))
        (change,) = reply.changes
        assert change["values"]["samplers"] == ["penalties", "temperature", "top_k"]
        assert change["at"] == 2  # 4 steps read the prompt


def test_a_card_stays_under_the_hand_that_moves_it_to_no_effect(panel):
    top_p = card(panel, "top_p")
    top_p.rows[0].slider.setValue(top_p.rows[0].slider.maximum())
    assert panel.values["top_p"] == 1.0 and top_p.is_off() and not top_p.isHidden()
    panel.fold_unused()
    assert top_p.isHidden() and not panel.chips["top_p"].isHidden()


def test_every_stage_can_be_switched_off_the_temperature_too(panel):
    panel.show_values({"temperature": 1.4, "dynatemp_range": 0.5})
    temperature = card(panel, "temperature")
    assert not temperature.off.isHidden()
    temperature.off.click()
    params = engine.SamplingParams(**panel.values)
    assert params.temperature == 1.0 and params.dynatemp_range == 0
    assert not temperature.isHidden()  # the one that everybody looks for stays
    for each in panel.cards:
        assert any(row.parameter.key in NEUTRAL for row in each.rows), each.sampler.name
