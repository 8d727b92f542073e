"""The Tokens tab: tokens as they were told, stage by stage, and another one chosen."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

import engine
from app.services.token_log import candidates
from app.ui.theme import theme
from app.ui.widgets.candidate_row import CandidateRow
from app.ui.widgets.token_text import share


def settle(window, qtbot):
    qtbot.waitUntil(lambda: not window.services.replies.running)


def ask(window, qtbot, text="Hello"):
    window.pane.send(text)
    settle(window, qtbot)


def open_tab(window, qtbot):
    window.inspector.show_tab("tokens")
    return window.sampling.tokens.panel


def wait_for_tokens(window, qtbot):
    message = window.sampling.tokens.answer()
    known = window.services.replies.tokens.of(message.id)
    panel = window.sampling.tokens.panel
    qtbot.waitUntil(lambda: len(panel.text._boxes) == len(known.tokens) > 0)
    return known


def test_tokens_are_told_only_while_the_tab_is_open(window, clients, qtbot):
    ask(window, qtbot)
    assert clients.last.requests[-1].n_probs == 0
    panel = open_tab(window, qtbot)
    assert panel.text.isHidden() and not panel.replay.isHidden()
    before = window.pane.transcript.messages[-1].text
    panel.replay.click()
    settle(window, qtbot)
    known = wait_for_tokens(window, qtbot)
    assert known.text_until(len(known.tokens)) == before
    assert not panel.text.isHidden() and panel.replay.isHidden()
    window.inspector.show_tab("sampling")
    ask(window, qtbot, "Again")
    assert clients.last.requests[-1].n_probs == 0


def test_a_click_shows_the_candidates_and_who_cut_them(window, qtbot):
    panel = open_tab(window, qtbot)
    ask(window, qtbot)
    wait_for_tokens(window, qtbot)
    middle = panel.text.box_of(2).center().toPoint()
    QTest.mouseClick(panel.text, Qt.MouseButton.LeftButton, pos=middle)
    assert panel.text.chosen == 2
    words = [row.words() for row in panel.rows]
    assert words[:2] == ["50 → 67 %", "25 → 33 %"] and words[2].endswith("% · cut by top\u2011k")
    assert not panel.rows[0].isEnabled() and panel.rows[1].isEnabled()
    assert "top\u2011k: 0 %" in panel.rows[2].toolTip()
    QTest.keyClick(panel.text, Qt.Key.Key_Right)
    assert panel.text.chosen == 3
    QTest.keyClick(panel.text, Qt.Key.Key_Home)
    assert panel.text.chosen == 0
    assert all(not row.grab().isNull() for row in [*panel.rows, panel.text])


def test_each_stage_shows_what_it_did_to_the_candidates(window, qtbot):
    panel = open_tab(window, qtbot)
    ask(window, qtbot)
    wait_for_tokens(window, qtbot)
    panel.text.choose(2)
    chips = panel.stages.chips
    texts = [chip.text() for chip in chips]
    assert texts == ["whole chain", "model 1,000", "top\u2011k 2", "draw 2"]
    assert [chip.isChecked() for chip in chips] == [True, False, False, False]
    chips[2].click()
    words = [row.words() for row in panel.rows[:3]]
    assert words == ["50 → 67 %", "25 → 33 %", "12 % · cut here"]
    QTest.keyClick(chips[2], Qt.Key.Key_Right)
    assert panel.stages.place == 2 and chips[3].isChecked() and not chips[2].isChecked()
    words = [row.words() for row in panel.rows[:3]]
    assert words == ["67 → 67 %", "33 → 33 %", "cut before"]
    assert "cut before" in panel.rows[2].accessibleName()
    panel.text.choose(3)
    assert chips[3].isChecked() and panel.rows[0].words() == "67 → 67 %"  # the same stage
    for _ in range(5):
        QTest.keyClick(chips[panel.stages.place + 1], Qt.Key.Key_Left)
    assert panel.stages.place == -1 and panel.rows[0].words() == "50 → 67 %"


def test_another_candidate_begins_a_branch_there(window, clients, qtbot):
    panel = open_tab(window, qtbot)
    ask(window, qtbot)
    known = wait_for_tokens(window, qtbot)
    first = window.pane.transcript.messages[-1]
    panel.text.choose(1)
    begun = known.text_until(1) + known.tokens[1].top[1].piece.decode()
    panel.rows[1].click()
    settle(window, qtbot)
    assert clients.last.requests[-1].prompt[-1]["content"] == begun
    last = window.pane.transcript.messages[-1]
    assert last.id != first.id and last.text.startswith(begun)
    after = wait_for_tokens(window, qtbot)
    assert after.text_until(2) == begun
    window.set_zoom(1.2)
    assert window.sampling.tokens.panel is not panel
    window.set_zoom(1.0)


def test_long_answers_wrap_and_go_on_where_they_were(window, qtbot):
    panel = open_tab(window, qtbot)
    ask(window, qtbot)
    known = wait_for_tokens(window, qtbot)
    text = panel.text
    text.resize(theme.px(120), text.height())
    boxes = [text.box_of(i) for i in range(len(known.tokens))]
    assert max(box.right() for box in boxes) <= text.width()
    assert len({box.top() for box in boxes}) > 2
    text.set_tokens(known.tokens[:5])
    text.set_tokens(known.tokens)
    assert [text.box_of(i) for i in range(len(known.tokens))] == boxes


def test_shares_have_as_many_digits_as_they_deserve():
    assert [share(p) for p in (0.874, 0.034, 0.0002, 0.0)] == ["87", "3.4", "0.02", "0"]


def test_what_a_grammar_forbids_cannot_be_chosen(qtbot):
    rivals = [
        engine.TokenProb(2, b" no", -1.5, is_forbidden=True),
        engine.TokenProb(3, b" maybe", -2.0),
    ]
    token = engine.TokenProb(1, b" yes", -0.5, tuple(rivals))
    rows = [CandidateRow(candidate) for candidate in candidates(token)]
    for row in rows:
        qtbot.addWidget(row)
    assert [row.isEnabled() for row in rows] == [False, False, True]
    assert rows[1].words() == "22 % · cut by grammar" and "not allow" in rows[1].toolTip()
