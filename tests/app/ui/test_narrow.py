"""A narrow window, or a large zoom, leaves the box to write in whole and every word readable."""

from PySide6.QtCore import QPoint

from app.ui.theme import theme


def narrow(window, qtbot, width=700, zoom=2.0):
    window.set_zoom(zoom)
    window.resize(width, 600)
    qtbot.waitUntil(lambda: window.columns.width() == width)


def test_the_chats_lie_over_the_pane_and_go_when_one_was_chosen(window, qtbot):
    narrow(window, qtbot)
    qtbot.waitUntil(lambda: window.pane.width() == 700)
    send = window.pane.composer.send
    assert send.mapTo(window, QPoint(send.width(), 0)).x() <= 700
    assert window.sidebar.isHidden()
    window.act("window.sidebar")
    assert window.sidebar.isVisible() and window.sidebar.search.hasFocus()
    window.sidebar.start.click()
    assert window.sidebar.isHidden()
    window.act("window.sidebar")
    window.pane.composer.edit.setFocus()
    assert window.sidebar.isHidden()


def test_a_wide_window_is_as_it_was_before(window, qtbot):
    narrow(window, qtbot)
    for key in ("window.sidebar", "window.inspector", "window.inspector"):
        window.act(key)
    window.set_zoom(1.0)
    window.resize(1440, 900)
    qtbot.waitUntil(lambda: window.sidebar.isVisible() and window.inspector.isVisible())
    assert window.sidebar.mapTo(window, QPoint(0, 0)).x() == 0
    assert window.services.settings["sidebar_open"] and window.services.settings["inspector_open"]


def test_the_window_fits_on_a_small_screen_at_any_zoom(window):
    window.set_zoom(2.0)
    window.resize(600, 440)
    assert (window.width(), window.height()) == (600, 440)


def test_the_status_line_leaves_out_what_has_no_room(window, qtbot):
    window.status.add_rate(25)
    window.status.set_state("busy", "Writing 2 answers, reading 1, 1 waiting")
    parts = (window.status.state, window.status.device, window.status.memory)

    def is_readable():
        return all(part.isHidden() or part.width() >= part.sizeHint().width() for part in parts)

    for width in (700, 560, 1440):
        window.resize(width, 600)
        qtbot.waitUntil(lambda width=width: window.status.width() == width)
        qtbot.waitUntil(is_readable, timeout=1000)
    assert window.status.device.isVisible() and window.status.memory.isVisible()
    assert theme.zoom == 1
