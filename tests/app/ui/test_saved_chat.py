"""A chat is saved with its memory from the list, and opened again by dropping the file."""

from PySide6.QtWidgets import QFileDialog


def test_a_chat_goes_into_a_file_and_comes_back(window, tmp_path, qtbot):
    window.pane.send("Why is the sky blue?")
    services, said = window.services, []
    services.chat_files.said.connect(said.append)
    qtbot.waitUntil(
        lambda: not services.replies.running and bool(services.database.conversations())
    )
    (chat,) = services.database.conversations()
    window.sidebar.action.emit("chat.save", chat.id)
    dialog = window.findChild(QFileDialog)
    assert dialog.selectedFiles()[0].endswith("Why is the sky blue.inglenook")
    dialog.fileSelected.emit(str(tmp_path / "sky.inglenook"))
    dialog.close()
    qtbot.waitUntil(lambda: len(said) == 1)
    window.open_file(tmp_path / "sky.inglenook")
    qtbot.waitUntil(lambda: window.pane.conversation_id not in (0, chat.id))
    qtbot.waitUntil(lambda: len(said) == 2)
    assert "with its memory" in said[0] and "nothing read again" in said[1]
    assert window.toast.isVisible()
    assert "scripted" in window.pane.transcript.messages[-1].text
