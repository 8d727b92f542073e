"""The table of actions: no key twice, every key bound, everything named."""

from app.ui.actions import ACTIONS


def test_no_key_stands_for_two_things():
    keys = [key for action in ACTIONS.values() for key in action.keys]
    assert len(keys) == len(set(keys))


def test_the_keys_people_expect():
    assert ACTIONS["chat.search"].keys[0] == "Ctrl+K"
    assert ACTIONS["chat.start"].keys[0] == "Ctrl+N"
    assert ACTIONS["message.stop"].keys == ("Esc",)
    assert ACTIONS["chat.rename"].keys == ("F2",)
    assert "Delete" not in [key for action in ACTIONS.values() for key in action.keys]


def test_every_key_does_something_in_the_window(window):
    by_the_composer = {"message.send"}
    with_keys = {key for key, action in ACTIONS.items() if action.keys}
    assert with_keys - by_the_composer <= set(window._acts)
    assert all(action.label and action.help for action in ACTIONS.values())
