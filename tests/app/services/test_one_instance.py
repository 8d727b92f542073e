"""One window per folder: the second start hands over its file, no socket is opened."""

import os
import threading
from pathlib import Path

from app.services.one_instance import OneInstance


def test_the_second_start_hands_over_its_file(tmp_path, qapp, qtbot):
    first, second = OneInstance(tmp_path), OneInstance(tmp_path)
    assert first.claim() and not second.claim()
    with qtbot.waitSignal(first.asked) as caught:
        assert second.hand_over("/somewhere/größe 模型.gguf")
    assert caught.args == ["/somewhere/größe 模型.gguf"]
    first.close()
    assert second.claim()
    second.close()


def test_a_start_behind_one_that_ends_takes_its_place(tmp_path, qapp, qtbot):
    first, second = OneInstance(tmp_path), OneInstance(tmp_path)
    assert first.claim() and not second.claim()
    first.is_listening = lambda: False  # its window is closing
    assert second.hand_over("/x.gguf")
    qtbot.wait(100)
    assert second.answer(0.1) == "silent"
    ending = threading.Timer(0.3, first.close)
    ending.start()
    assert second.answer(5.0) == "free"
    ending.join()
    third = OneInstance(tmp_path)
    assert not third.claim()
    second.close()


def test_a_wish_that_was_taken_is_done(tmp_path, qapp, qtbot):
    first, second = OneInstance(tmp_path), OneInstance(tmp_path)
    assert first.claim()
    with qtbot.waitSignal(first.asked):
        second.hand_over("")
    assert second.answer(1.0) == "taken"
    first.close()


def test_a_damaged_wish_is_passed_over(tmp_path, qapp, qtbot):
    one = OneInstance(tmp_path)
    assert one.claim()
    (tmp_path / "open-request.json").write_text("{", encoding="utf-8")
    qtbot.wait(50)
    one.close()


def test_it_opens_no_socket(tmp_path, qapp):
    def sockets():
        links = Path("/proc/self/fd")
        return {os.readlink(f) for f in links.iterdir() if f.is_symlink() and _is_socket(f)}

    before = sockets() if Path("/proc/self/fd").exists() else set()
    one = OneInstance(tmp_path)
    one.claim()
    after = sockets() if Path("/proc/self/fd").exists() else set()
    one.close()
    assert after <= before


def _is_socket(link):
    try:
        return os.readlink(link).startswith("socket:")
    except OSError:
        return False
