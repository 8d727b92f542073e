"""Arabic and Hebrew stand right with their markers and bars, line by line beside other scripts."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QImage, QPainter

from app.ui.markdown import parse, plain_blocks
from app.ui.widgets.block import make_view

WIDE = 400
ARABIC = "مرحبا بالعالم"


def columns(view):
    """Return the first and last column that a view paints on."""
    view.set_width(WIDE)
    image = QImage(WIDE, max(1, view.height), QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    view.paint(painter, QRectF(0, 0, WIDE, view.height))
    painter.end()
    inked = [
        x for x in range(WIDE) if any(image.pixelColor(x, y).alpha() for y in range(image.height()))
    ]
    return inked[0], inked[-1]


def view_of(source):
    (block,) = parse(source)
    return make_view(block)


def test_a_marker_stands_right_of_what_runs_to_the_left(look):
    left, right = columns(view_of(f"- {ARABIC}"))
    assert left > WIDE // 2 and right > WIDE - 22
    left, right = columns(view_of("- hello"))
    assert left < 22 and right < WIDE // 2
    assert columns(view_of(f"7. {ARABIC}"))[0] > WIDE // 2


def test_the_bar_of_a_quote_stands_right_of_what_runs_to_the_left(look):
    left, right = columns(view_of(f"> {ARABIC}"))
    assert left > WIDE // 2 and right >= WIDE - 3
    assert columns(view_of("> hello"))[0] < 3


def test_a_point_finds_the_letter_that_is_painted_there(look):
    view = view_of(f"- {ARABIC}")
    view.set_width(WIDE)
    last = view.end_point().x()
    assert view.hit(last, 8) == view.last_position()
    assert view.hit(WIDE - 22, 8) == 0


def test_each_line_of_a_question_runs_its_own_way(look):
    (block,) = plain_blocks(f"{ARABIC}\n\nhello\n  you\n{ARABIC} hello")
    view = make_view(block)
    view.set_width(WIDE)
    found, part = [], view.document.begin()
    while part.isValid():
        found.append((part.text(), part.textDirection()))
        part = part.next()
    way = Qt.LayoutDirection
    assert [direction for _, direction in found] == [
        way.RightToLeft,
        way.LeftToRight,
        way.RightToLeft,
    ]
    assert view.document.toPlainText() == f"{ARABIC}\n\nhello\n  you\n{ARABIC} hello"
