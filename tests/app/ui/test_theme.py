"""Both appearances: the agreed colours, readable text, live switching, zoom."""

import pytest

from app.ui.theme import DARK, LIGHT, theme

AGREED = {
    "background": ("#FAF7F2", "#1D1A18"),
    "sidebar": ("#F3EEE7", "#181513"),
    "card": ("#FFFFFF", "#262220"),
    "line": ("#E6DED4", "#38322E"),
    "text": ("#2A2521", "#ECE5DD"),
    "muted": ("#857A70", "#9C9188"),
    "faint": ("#B8ADA2", "#665C55"),
    "accent": ("#C2502F", "#E27A56"),
    "accent_background": ("#F6E3DA", "#3A2720"),
    "own": ("#F0E8DE", "#2C2723"),
    "code": ("#F5F0E9", "#141211"),
}


def luminance(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", AGREED)
def test_the_colours_are_the_agreed_ones(name):
    assert (getattr(LIGHT, name), getattr(DARK, name)) == AGREED[name]


@pytest.mark.parametrize("tokens", [LIGHT, DARK], ids=["light", "dark"])
def test_what_must_be_read_can_be_read(tokens):
    for ground in ("background", "sidebar", "card", "own"):
        for text in ("text", "soft", "accent_text"):
            assert contrast(getattr(tokens, text), getattr(tokens, ground)) >= 4.5
    assert contrast(tokens.on_accent, tokens.accent) >= 4.5
    for token in ("text", "accent_text", "string", "number", "comment", "function"):
        assert contrast(getattr(tokens, token), tokens.code) >= 4.5


def test_switching_and_zooming_reach_every_painter(qapp, qtbot):
    with qtbot.waitSignal(theme.changed):
        theme.choose("dark")
    assert theme.is_dark() and DARK.background in qapp.styleSheet()
    with qtbot.waitSignal(theme.changed):
        theme.set_zoom(1.5)
    assert theme.px(10) == 15 and theme.font(14).pixelSize() == 21
    theme.set_zoom(9)
    assert theme.zoom == 2.0
    theme.set_zoom(1.0)
    theme.choose("light")
    assert not theme.is_dark()
