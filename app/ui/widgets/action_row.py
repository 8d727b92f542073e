"""The row under a message: versions, copy, edit, regenerate, and the figures of the answer."""

from typing import Any

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QPushButton, QWidget

from app.strings import count, tr
from app.ui.actions import ACTIONS
from app.ui.theme import theme

# Actions of a message in the order they give way when the pane is narrow: the last ones first.
_OWN = (
    "message.copy",
    "message.edit",
    "message.regenerate",
    "message.branch",
    "message.delete",
)
_ANSWER = (
    "message.copy",
    "message.edit",
    "message.regenerate",
    "message.continue",
    "message.branch",
    "message.details",
    "message.replay",
    "message.delete",
)


class ActionRow(QWidget):
    """One row for the whole transcript, put under the message that has the attention.

    Signals:
        triggered(str): the key of an action in ACTIONS.
        sibling(int): go to the sibling that many steps away.
    """

    triggered = Signal(str)
    sibling = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.buttons: dict[str, QPushButton] = {}
        self.previous = self._button("‹", tr("Earlier version"), lambda: self.sibling.emit(-1))
        self.position = QLabel("", self)
        self.position.setObjectName("secondary")
        self.next = self._button("›", tr("Later version"), lambda: self.sibling.emit(1))
        self.more = self._button("⋯", tr("More actions"), self._open_menu)
        self.figures = QLabel("", self)
        self.figures.setObjectName("secondary")
        self.figures.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._keys: tuple[str, ...] = ()
        for key in dict.fromkeys(_ANSWER + _OWN):
            action = ACTIONS[key]
            tip = tr(action.help) + (f"  ({action.shown_keys()})" if action.keys else "")
            self.buttons[key] = self._button(tr(action.label), tip, self._trigger(key))
            self.buttons[key].setAccessibleName(tr(action.help))
        self._row = QHBoxLayout(self)
        self._row.setSpacing(theme.px(4))
        self._row.addStretch(0)
        widgets = (self.previous, self.position, self.next, *self.buttons.values(), self.more)
        for widget in widgets:
            self._row.addWidget(widget)
        self._row.addStretch(1)
        self._row.addWidget(self.figures)

    def present(self, message: Any, place: tuple[int, int], figures: str) -> None:
        """Show what can be done with `message`; `place` is (its number, of how many), from 1."""
        is_running, is_own = message.state == "running", message.role == "user"
        self._keys = _OWN if is_own else _ANSWER
        self._keys = () if is_running else self._keys
        number, of = place
        for widget in (self.previous, self.position, self.next):
            widget.setVisible(of > 1 and not is_running)
        self.position.setText(f"{count(number)}/{count(of)}")
        self.previous.setEnabled(number > 1)
        self.next.setEnabled(number < of)
        self.figures.setText(figures)
        self._align(is_own)
        self._fit()

    def _align(self, to_the_right: bool) -> None:
        """Stand right under an own message, else left with the figures at the right."""
        self._row.setContentsMargins(0, 0, 0 if to_the_right else theme.px(6), 0)
        self._row.setStretch(0, 1 if to_the_right else 0)
        self._row.setStretch(self._row.count() - 2, 0 if to_the_right else 1)

    def keys(self) -> tuple[str, ...]:
        """Return the actions of the message on show, hidden ones too."""
        return self._keys

    def set_figures(self, figures: str) -> None:
        """Show other figures, for instance the speed while an answer runs."""
        self.figures.setText(figures)

    def _fit(self) -> None:
        """Hide the figures first, then the last actions, until the row fits its width."""
        spacing = theme.px(4)
        room = self.width() - self.more.sizeHint().width() - spacing
        if self.position.text() and not self.position.isHidden():
            room -= 3 * theme.px(26)
        n_shown = 0
        for key in self._keys:
            room -= self.buttons[key].sizeHint().width() + spacing
            if room < 0:
                break
            n_shown += 1
        shown = self._keys[:n_shown]
        for key, button in self.buttons.items():
            button.setVisible(key in shown)
        self.more.setVisible(n_shown < len(self._keys))
        fits = room > self.figures.sizeHint().width() or not self._keys
        self.figures.setVisible(bool(self.figures.text()) and fits)

    def _open_menu(self) -> None:
        menu = QMenu(self)
        for key in self._keys:
            if self.buttons[key].isHidden():
                menu.addAction(tr(ACTIONS[key].label), self._trigger(key))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.more.mapToGlobal(self.more.rect().bottomLeft()))

    def _trigger(self, key: str) -> Any:
        return lambda _=False: self.triggered.emit(key)

    def _button(self, label: str, name: str, pressed: Any) -> QPushButton:
        button = QPushButton(label, self)
        button.setObjectName("quiet")
        button.setAccessibleName(name)
        button.setToolTip(name)
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.clicked.connect(lambda _=False: pressed())
        return button

    def sizeHint(self) -> QSize:
        return QSize(theme.px(400), theme.px(26))
