"""The order of the sampling chain: cards dragged, or moved by Alt+Up and Alt+Down."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeySequence, QMouseEvent, QShortcut
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget

from app.strings import tr
from app.ui.bound import bound
from app.ui.widgets.sampler_card import SamplerCard

# Stages that replace the last draw: they stand nowhere in the order until they are in use.
UNORDERED = ("mirostat", "adaptive_p")


class ChainOrder(QObject):
    """Puts cards into the order of the chain and lets the person change it.

    Names without a card (of an alias, or of a stage without numbers) keep their place.

    Signals:
        moved(list): the names of all stages in their new order.
    """

    moved = Signal(list)

    def __init__(self, cards: Sequence[SamplerCard], box: QVBoxLayout, first: int) -> None:
        """`first` is the place of the first card in its box."""
        super().__init__()
        self._cards = {card.sampler.name: card for card in cards}
        self._box, self._first = box, first
        self.default = [name for name in self._cards if name not in UNORDERED]
        self.names = list(self.default)
        self._shown: list[SamplerCard] = list(cards)
        self._dragged: SamplerCard | None = None
        self._pressed_at, self._is_dragging = 0.0, False
        self._before: list[str] = []
        for card in cards:
            if card.sampler.name not in UNORDERED:
                self._let_move(card)

    def _let_move(self, card: SamplerCard) -> None:
        for key, step in (("Alt+Up", -1), ("Alt+Down", 1)):
            shortcut = QShortcut(QKeySequence(key), card)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(bound(self.step, card, step))
        card.can_move = True
        card.title.setCursor(Qt.CursorShape.OpenHandCursor)
        card.title.setToolTip(tr("Drag, or Alt+↑ and Alt+↓, to change the order"))
        card.installEventFilter(self)

    def show(self, names: Sequence[str] | None) -> None:
        """Put the cards into an order; None is the engine's own. Nothing is emitted."""
        self.names = [str(name) for name in names] if names is not None else list(self.default)
        inside = [self._cards[name] for name in dict.fromkeys(self.names) if name in self._cards]
        order = inside + [card for card in self._cards.values() if card not in inside]
        if order == self._shown:
            return
        self._shown = order
        for place, card in enumerate(order):
            self._box.removeWidget(card)
            self._box.insertWidget(self._first + place, card)
        stops = [stop for card in order for stop in _stops(card)]
        for before, after in zip(stops, stops[1:], strict=False):
            QWidget.setTabOrder(before, after)

    def step(self, card: SamplerCard, step: int) -> None:
        """Move a card up (-1) or down (1) past the next one that is in use."""
        if self._move(card, step):
            self.moved.emit(list(self.names))

    def _move(self, card: SamplerCard, step: int) -> bool:
        used = [c for c in self._shown if not c.isHidden() and c.sampler.name in self.names]
        if card not in used or not 0 <= used.index(card) + step < len(used):
            return False
        name, other = card.sampler.name, used[used.index(card) + step].sampler.name
        names = [each for each in self.names if each != name]
        names.insert(names.index(other) + (step > 0), name)
        self.show(names)
        return True

    def eventFilter(self, card: QObject, event: QEvent) -> bool:
        kind = event.type()
        if not isinstance(event, QMouseEvent) or not isinstance(card, SamplerCard):
            return False
        y = event.globalPosition().y()
        if kind == QEvent.Type.MouseButtonPress and event.button() == Qt.MouseButton.LeftButton:
            self._dragged, self._pressed_at, self._is_dragging = card, y, False
            self._before = list(self.names)
            return True
        if self._dragged is not card:
            return False
        if kind == QEvent.Type.MouseMove:
            self._drag_to(card, y)
            return True
        if kind == QEvent.Type.MouseButtonRelease:
            self._dragged = None
            card.title.setCursor(Qt.CursorShape.OpenHandCursor)
            if self.names != self._before:
                self.moved.emit(list(self.names))
            return True
        return False

    def _drag_to(self, card: SamplerCard, y: float) -> None:
        """Let the card change places with neighbours whose middle the mouse has passed."""
        if not self._is_dragging:
            self._is_dragging = abs(y - self._pressed_at) >= QApplication.startDragDistance()
            card.title.setCursor(Qt.CursorShape.ClosedHandCursor)
            return
        mouse = card.y() + y - card.mapToGlobal(card.rect().topLeft()).y()
        used = [c for c in self._shown if not c.isHidden() and c.sampler.name in self.names]
        place = used.index(card) if card in used else -1
        if place > 0 and mouse < used[place - 1].geometry().center().y():
            self._move(card, -1)
        elif 0 <= place < len(used) - 1 and mouse > used[place + 1].geometry().center().y():
            self._move(card, 1)
        self._box.activate()


def _stops(card: SamplerCard) -> list[Any]:
    """Return what Tab reaches on a card, in order."""
    parts: list[QWidget] = [card.off, card.rows[0].box, card.rows[0].slider]
    for row in card.rows[1:]:
        parts += [row.box, row.slider]
    return [*parts, card.more]
