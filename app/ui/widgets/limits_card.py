"""How long an answer and its thoughts may be, where it stops, and its seed."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from app.strings import tr
from app.ui.bound import bound
from app.ui.theme import theme
from app.ui.widgets.controls import label

MOST = {"n_predict": 1_000_000, "reasoning_budget": 1_000_000, "seed": 2**32 - 2}
_NUMBERS = (
    ("n_predict", "Longest answer", "no limit", "Tokens after which an answer ends."),
    (
        "reasoning_budget",
        "Thinking",
        "no limit",
        "Tokens that a model may think before it answers; 0 lets it answer at once. Only for "
        "models that think.",
    ),
    ("seed", "Seed", "another each time", "The same seed and values give the same answer again."),
)


class LimitsCard(QFrame):
    """Shows and changes limits of the next answers; an empty box is no limit.

    Signals:
        changed(str, object): n_predict, reasoning_budget, seed (numbers or None) or stop (texts).
    """

    changed = Signal(str, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self.setAccessibleName(tr("Limits"))
        self.values: dict[str, Any] = {}
        self.boxes: dict[str, QLineEdit] = {}
        column = QVBoxLayout(self)
        column.setContentsMargins(theme.px(12), theme.px(9), theme.px(12), theme.px(10))
        column.setSpacing(theme.px(6))
        column.addWidget(label(tr("Limits"), "subheading", self))
        grid = QGridLayout()
        grid.setHorizontalSpacing(theme.px(10))
        grid.setVerticalSpacing(theme.px(6))
        for key, name, empty, help in _NUMBERS:
            self._add(grid, key, tr(name), tr(empty), tr(help))
        words = tr("Words that end an answer, with commas between them; \\n is a new line.")
        self._add(grid, "stop", tr("Stop words"), tr("none"), words)
        column.addLayout(grid)
        self.present({})

    def _add(self, grid: QGridLayout, key: str, name: str, empty: str, help: str) -> None:
        title: QLabel = label(name, "secondary", self)
        box = QLineEdit(self)
        box.setObjectName("value")
        box.setPlaceholderText(empty)
        box.setAccessibleName(name)
        box.setAccessibleDescription(help)
        box.setToolTip(help)
        title.setToolTip(help)
        title.setBuddy(box)
        box.setAlignment(Qt.AlignmentFlag.AlignRight)
        box.editingFinished.connect(bound(self._on_typed, key))
        grid.addWidget(title, grid.rowCount(), 0)
        grid.addWidget(box, grid.rowCount() - 1, 1)
        grid.setColumnStretch(1, 1)
        self.boxes[key] = box

    def present(self, values: Mapping[str, Any]) -> None:
        """Show the limits of a chat; nothing is emitted. What is no limit is passed by."""
        self.values = {
            key: values[key]
            for key in MOST
            if type(values.get(key)) is int and 0 <= values[key] <= MOST[key]
        }
        words = values.get("stop")
        if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
            self.values["stop"] = list(words)
        for key in self.boxes:
            self._show(key)

    def _show(self, key: str) -> None:
        value = self.values.get(key)
        text = stop_text(value) if isinstance(value, list) else "" if value is None else str(value)
        self.boxes[key].setText(text)
        self.boxes[key].setCursorPosition(0)

    def _on_typed(self, key: str) -> None:
        text = self.boxes[key].text().strip()
        value: Any = None
        if key == "stop":
            value = stop_words(text) or None
        elif text:
            digits = "".join(c for c in text if c not in " ,.'’_\u202f\u00a0")
            if not digits.isascii() or not digits.isdecimal():
                self._show(key)  # what is no number changes nothing
                return
            value = min(MOST[key], int(digits[:12]))
        if value != self.values.get(key):
            self.values = {name: v for name, v in self.values.items() if name != key}
            self.values |= {key: value} if value is not None else {}
            self.changed.emit(key, value)
        self._show(key)


def stop_words(text: str) -> list[str]:
    """Return the words in a line: commas part them, \\n \\t \\\\ and \\, stand for characters."""
    words, word, rest = [], "", iter(text)
    for char in rest:
        if char == "\\":
            after = next(rest, "\\")
            word += {"n": "\n", "t": "\t", "\\": "\\", ",": ","}.get(after, "\\" + after)
        elif char == ",":
            words.append(word)
            word = ""
        else:
            word += char if word or char != " " else ""
    return [word for word in (*words, word) if word]


def stop_text(words: list[str]) -> str:
    """Return words in a line that `stop_words` reads."""
    pairs = (("\\", "\\\\"), ("\n", "\\n"), ("\t", "\\t"), (",", "\\,"))
    for char, written in pairs:
        words = [word.replace(char, written) for word in words]
    return ", ".join(words)
