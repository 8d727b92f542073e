"""The Qt stylesheet of the window, written from the design tokens."""

from __future__ import annotations

from string import Template
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.ui.theme import Theme

_RULES = Template("""
QWidget { outline: 0; }
QToolTip { background: $card; color: $text; border: 1px solid $line; padding: ${p4}px ${p8}px;
  border-radius: ${p4}px; }
QMainWindow, #page { background: $background; }
#sidebar { background: $sidebar; border: 0; }
#inspector { background: $background; border: 0; }
#inspector[overlaid="true"] { border-left: 1px solid $line; }
#statusBar { background: $sidebar; border: 0; border-top: 1px solid $line; }
#paneHeader { background: $background; border: 0; border-bottom: 1px solid $line; }
#title { font-size: ${f14}px; font-weight: 600; color: $text; }
#title:disabled { color: $soft; }
#secondary { font-size: ${f12}px; color: $soft; }
#name { font-size: ${f12}px; font-weight: 500; color: $text; }
#section { font-size: ${f11}px; font-weight: 600; color: $muted; }
#heading { font-size: ${f20}px; font-weight: 600; color: $text; }
#subheading { font-size: ${f14}px; font-weight: 500; color: $text; }
#subheading:disabled { color: $soft; }
#errorTitle { font-weight: 600; color: $bad; }
#code { font-family: "$code_face"; font-size: ${f12}px; }

QScrollBar:vertical { background: transparent; width: ${p10}px; margin: 0; }
QScrollBar:horizontal { background: transparent; height: ${p10}px; margin: 0; }
QScrollBar::handle { background: $line; border-radius: ${p3}px; margin: 2px; }
QScrollBar::handle:vertical { min-height: ${p32}px; }
QScrollBar::handle:horizontal { min-width: ${p32}px; }
QScrollBar::handle:hover { background: $faint; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }

QPushButton { background: $card; color: $text; border: 1px solid $line; border-radius: ${p8}px;
  padding: ${p6}px ${p14}px; font-size: ${f13}px; font-weight: 500; }
QPushButton:hover { border-color: $faint; }
QPushButton:pressed { background: $own; }
QPushButton:focus { border-color: $accent; }
QPushButton:disabled { color: $faint; }
QPushButton#primary { background: $accent; color: $on_accent; border: 1px solid $accent;
  font-weight: 600; }
QPushButton#primary:hover { background: $accent_hover; border-color: $accent_hover; }
QPushButton#primary:focus { border: 1px solid $text; }
QPushButton#primary:disabled { background: $accent_background; color: $soft;
  border-color: $accent_background; }
QPushButton#quiet { background: transparent; border: 1px solid transparent; color: $soft;
  font-size: ${f12}px; font-weight: 400; padding: ${p2}px ${p5}px; border-radius: ${p5}px; }
QPushButton#quiet:hover { color: $text; background: $own; }
QPushButton#quiet:focus { border-color: $accent; color: $text; }
QPushButton#quiet:disabled { color: $faint; }
QPushButton#off { background: $code; border: 1px solid $line; border-radius: ${p6}px;
  color: $soft; font-family: "$code_face"; font-size: ${f12}px; font-weight: 400;
  padding: ${p1}px ${p8}px; }
QPushButton#off:hover { border-color: $faint; color: $text; }
QPushButton#off:focus { border-color: $accent; }
QPushButton#inline { background: transparent; border: 0; color: $soft; font-size: ${f12}px;
  font-weight: 400; padding: ${p2}px 0; }
QPushButton#inline:hover, QPushButton#inline:focus { color: $accent_text; }
QPushButton#inline:disabled { color: $faint; }
QPushButton#chip { background: $background; border: 1px solid $line; border-radius: ${p11}px;
  color: $soft; font-size: ${f12}px; font-weight: 400; padding: 0 ${p10}px;
  min-height: ${p22}px; max-height: ${p22}px; }
QPushButton#chip:hover { border-color: $faint; color: $text; }
QPushButton#chip:focus { border-color: $accent; }
QPushButton#stage { background: transparent; border: 1px solid $line; border-radius: ${p5}px;
  color: $soft; font-size: ${f12}px; font-weight: 400; padding: ${p1}px ${p6}px; }
QPushButton#stage:hover { border-color: $faint; color: $text; }
QPushButton#stage:checked { background: $accent_background; border-color: $accent_background;
  color: $accent_text; }
QPushButton#stage:focus { border-color: $accent; }
QPushButton#preset { background: transparent; border: 1px solid $line; border-radius: ${p6}px;
  color: $soft; font-size: ${f12}px; font-weight: 400; padding: ${p5}px ${p4}px; }
QPushButton#preset:hover { border-color: $faint; color: $text; }
QPushButton#preset:checked { background: $accent_background; border-color: $accent_background;
  color: $accent_text; font-weight: 600; }
QPushButton#preset:focus { border-color: $accent; }
QPushButton#tab { background: transparent; border: 0; border-bottom: 2px solid transparent;
  border-radius: 0; color: $soft; font-size: ${f13}px; font-weight: 400;
  padding: 0 1px; margin: 0; }
QPushButton#tab:hover, QPushButton#tab:focus { color: $text; }
QPushButton#tab:checked { color: $text; font-weight: 600; border-bottom: 2px solid $accent; }
QPushButton::menu-indicator { width: 0; }

QToolButton { background: transparent; border: 1px solid transparent; border-radius: ${p6}px;
  padding: ${p4}px; color: $soft; }
QToolButton:hover { background: $own; color: $text; }
QToolButton:focus { border-color: $accent; }
QToolButton::menu-indicator { width: 0; image: none; }

QLineEdit { background: $card; color: $text; border: 1px solid $line; border-radius: ${p8}px;
  padding: ${p7}px ${p10}px; font-size: ${f14}px; selection-background-color: $accent;
  selection-color: $on_accent; }
QLineEdit:focus { border-color: $accent; }
QLineEdit#value { font-family: "$code_face"; font-size: ${f12}px; background: $code;
  border-radius: ${p6}px; padding: ${p1}px ${p6}px; }
QLineEdit#value:disabled { color: $faint; }
QPlainTextEdit, QTextEdit { background: transparent; color: $text; border: 0;
  selection-background-color: $accent; selection-color: $on_accent; }
QPlainTextEdit#field { background: $card; border: 1px solid $line; border-radius: ${p8}px;
  padding: ${p4}px; }
QPlainTextEdit#field:focus { border-color: $accent; }
QSpinBox, QDoubleSpinBox, QComboBox { background: $card; color: $text; border: 1px solid $line;
  border-radius: ${p8}px; padding: ${p5}px ${p8}px; font-size: ${f13}px; }
QSpinBox:focus, QDoubleSpinBox:focus, QComboBox:focus { border-color: $accent; }
QSpinBox::up-button, QSpinBox::down-button { width: 0; border: 0; }
QComboBox::drop-down { border: 0; width: ${p22}px; }
QComboBox QAbstractItemView { background: $card; color: $text; border: 1px solid $line;
  selection-background-color: $accent_background; selection-color: $text; }
QCheckBox { color: $text; font-size: ${f13}px; spacing: ${p8}px; }

#card, #popup { background: $card; border: 1px solid $line; border-radius: ${p10}px; }
#errorCard { background: $card; border: 1px solid $bad; border-radius: ${p10}px; }
#drop { background: transparent; border: 1px dashed $faint; border-radius: ${p10}px; }
#toast { background: $text; border: 0; border-radius: ${p8}px; }
#toast QLabel { color: $background; font-size: ${f13}px; }
#toast QPushButton { background: transparent; border: 1px solid transparent; color: $toast_accent;
  font-weight: 600; padding: ${p2}px ${p8}px; }
#toast QPushButton:hover { text-decoration: underline; }
#toast QPushButton:focus { border-color: $toast_accent; }

QListView, QTreeView { background: transparent; border: 0; outline: 0; }
QScrollArea, #scrolled { background: transparent; border: 0; }
QProgressBar { background: $line; border: 0; border-radius: ${p2}px; max-height: ${p4}px;
  min-height: ${p4}px; }
QProgressBar::chunk { background: $accent; border-radius: ${p2}px; }
QSplitter::handle { background: $line; }
QSplitter::handle:hover { background: $accent; }

QMenu { background: $card; color: $text; border: 1px solid $line; padding: ${p4}px;
  font-size: ${f13}px; }
QMenu::item { padding: ${p6}px ${p24}px ${p6}px ${p12}px; border-radius: ${p4}px; }
QMenu::item:selected { background: $accent_background; }
QMenu::item:disabled { color: $faint; }
QMenu::separator { height: 1px; background: $line; margin: ${p4}px ${p8}px; }
QDialog { background: $background; }
QTableView { background: $card; border: 1px solid $line; gridline-color: $line; }
""")


def stylesheet(theme: Theme) -> str:
    """Return the stylesheet for the theme's tokens at its zoom."""
    tokens = theme.tokens
    dark = theme.is_dark()
    values = {name: getattr(tokens, name) for name in tokens.__dataclass_fields__}
    values |= {f"p{n}": str(theme.px(n)) for n in range(1, 41)}
    values |= {f"f{n}": str(theme.px(n)) for n in range(9, 31)}
    values["code_face"] = theme.code_face
    values["accent_hover"] = "#EA8B6A" if dark else "#AD4526"
    values["toast_accent"] = "#B0452A" if dark else "#F0A286"
    return _RULES.substitute(values)
