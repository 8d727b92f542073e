"""Line icons from icons/, drawn in any colour and size, and the icon of the program."""

from functools import lru_cache
from pathlib import Path

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QGuiApplication, QIcon, QPainter, QPixmap

ICONS = Path(__file__).resolve().parents[2] / "icons"


def icon(name: str, color: str, size: int = 16) -> QIcon:
    """Return the action icon `name` in `color` (#rrggbb) at `size` pixels, sharp on any screen."""
    application = QGuiApplication.instance()
    ratio = application.devicePixelRatio() if isinstance(application, QGuiApplication) else 1.0
    return _drawn(f"actions/{name}.svg", color, size, ratio)


def program_icon() -> QIcon:
    """Return the icon of the program."""
    return _drawn("inglenook.svg", "", 256, 1.0)


@lru_cache(maxsize=256)
def _drawn(file: str, color: str, size: int, ratio: float) -> QIcon:
    from PySide6.QtSvg import QSvgRenderer

    source = (ICONS / file).read_text(encoding="utf-8")
    if color:
        source = source.replace("#000000", color)
    pixmap = QPixmap(round(size * ratio), round(size * ratio))
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    QSvgRenderer(QByteArray(source.encode())).render(painter, QRectF(pixmap.rect()))
    painter.end()
    pixmap.setDevicePixelRatio(ratio)
    return QIcon(pixmap)
