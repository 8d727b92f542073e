"""The accessibility tree: every control has a name, messages are read one by one, answers told."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest

ROLES = {
    QAccessible.Role.Button,
    QAccessible.Role.PushButton,
    QAccessible.Role.EditableText,
    QAccessible.Role.Slider,
    QAccessible.Role.CheckBox,
    QAccessible.Role.ComboBox,
    QAccessible.Role.List,
    QAccessible.Role.ProgressBar,
}


def tree(interface):
    yield interface
    for i in range(interface.childCount()):
        child = interface.child(i)
        if child is not None:
            yield from tree(child)


def ask(window, qtbot):
    window.pane.send("Hello")
    qtbot.waitUntil(lambda: not window.services.replies.running)


def test_every_control_in_the_tree_has_a_name(window, qtbot):
    ask(window, qtbot)
    nodes = list(tree(QAccessible.queryAccessibleInterface(window)))
    controls = [node for node in nodes if node.role() in ROLES and node.object() is not None]
    assert len(controls) > 20
    nameless = [
        node.object()
        for node in controls
        if not node.text(QAccessible.Text.Name)
        and not node.object().objectName().startswith("qt_")
        and not node.state().invisible
    ]
    assert not nameless, nameless


def test_sliders_say_what_they_are_and_where_they_stand(window):
    slider = window.sampling.panel.cards[-1].rows[0].slider
    node = QAccessible.queryAccessibleInterface(slider)
    assert node.role() == QAccessible.Role.Slider
    assert node.text(QAccessible.Text.Name) == "Temperature"
    assert node.text(QAccessible.Text.Description).startswith("0.80")


def test_messages_can_be_reached_and_read_with_the_keyboard(window, qtbot):
    ask(window, qtbot)
    views = window.pane.transcript._views
    assert views[0].accessibleName() == "You: Hello"
    assert views[1].accessibleName().startswith("Answer: This is a")
    window.activateWindow()
    views[1].setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(views[1], Qt.Key.Key_Up)
    qtbot.waitUntil(lambda: views[0].hasFocus())


def test_a_finished_answer_is_announced_once(window, qtbot, monkeypatch):
    told = []
    monkeypatch.setattr(QAccessible, "isActive", staticmethod(lambda: True))
    monkeypatch.setattr(QAccessible, "updateAccessibility", staticmethod(told.append))
    ask(window, qtbot)
    said = [event.message() for event in told if hasattr(event, "message")]
    assert len(said) == 1 and "scripted" in said[0]
