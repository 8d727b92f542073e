"""The Slots tab: what the engine remembers, slot by slot, with save, restore and erase by hand."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QVBoxLayout, QWidget

from app.services.figures import speed
from app.services.slots import SlotView
from app.strings import count, tr
from app.ui.bound import bound
from app.ui.theme import theme
from app.ui.widgets.controls import ElidedLabel, button, label

STATES = {
    "idle": "ready",
    "wait_other": "waiting for a shared prompt",
    "started": "starting",
    "processing_prompt": "reading",
    "done_prompt": "reading",
    "generating": "writing",
}


class SlotCard(QFrame):
    """One slot: its state, its conversation, its tokens, and what can be done with it.

    Signals:
        action(str): "save", "restore" or "erase".
        opened(): its conversation should be shown.
    """

    action = Signal(str)
    opened = Signal()

    def __init__(self, id_slot: int, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self.name = label(tr("Slot {id}", id=id_slot + 1), "subheading", self)
        self.state = label("", "secondary", self)
        self.title = ElidedLabel("", "", self)
        self.title.double_clicked.connect(self.opened)
        self.fill = QProgressBar(self)
        self.fill.setTextVisible(False)
        self.fill.setRange(0, 1000)
        self.tokens = label("", "secondary", self)
        self.tokens.setWordWrap(True)
        where = tr("slot {id}", id=id_slot + 1)
        self.buttons = {
            "save": button(
                tr("Save…"), "inline", tr("Save the memory of {slot}", slot=where), self
            ),
            "restore": button(
                tr("Restore…"), "inline", tr("Read a saved memory into {slot}", slot=where), self
            ),
            "erase": button(
                tr("Erase"), "inline", tr("Forget what {slot} holds", slot=where), self
            ),
        }
        self._arrange()

    def _arrange(self) -> None:
        box = QVBoxLayout(self)
        box.setContentsMargins(theme.px(12), theme.px(9), theme.px(12), theme.px(7))
        box.setSpacing(theme.px(5))
        head = QHBoxLayout()
        head.addWidget(self.name)
        head.addStretch(1)
        head.addWidget(self.state)
        box.addLayout(head)
        for widget in (self.title, self.fill, self.tokens):
            box.addWidget(widget)
        row = QHBoxLayout()
        row.setSpacing(theme.px(18))
        for name, made in self.buttons.items():
            made.clicked.connect(bound(self.action.emit, name))
            row.addWidget(made)
        row.addStretch(1)
        box.addLayout(row)

    def show_slot(self, slot: SlotView, title: str) -> None:
        """Show the slot as it is now."""
        state = tr(STATES.get(slot.state, slot.state))
        if slot.rate:
            state = tr("{state} · {n}/s", state=state, n=speed(slot.rate))
        _set_text(self.state, state if slot.n_tokens or not slot.is_idle else tr("empty"))
        if title != self.title.full_text():
            self.title.set_text(title)
        self.title.setVisible(bool(title))
        part = slot.n_tokens / slot.n_ctx if slot.n_ctx else 0
        self.fill.setValue(round(1000 * min(1.0, part)))
        self.fill.setVisible(bool(slot.n_tokens))
        words = tr("{n} of {all} tokens", n=count(slot.n_tokens), all=count(slot.n_ctx))
        self.fill.setAccessibleName(words)
        if slot.n_prompt and not slot.is_idle:
            hits = tr("{n} of {all} from memory", n=count(slot.n_cached), all=count(slot.n_prompt))
            words = f"{words}\n{tr('Prompt')}: {hits}"
        _set_text(self.tokens, words)
        self.buttons["save"].setEnabled(slot.is_idle and slot.n_tokens > 0)
        self.buttons["erase"].setEnabled(slot.is_idle and slot.n_tokens > 0)
        self.buttons["restore"].setEnabled(slot.is_idle)


class SlotsPanel(QWidget):
    """A card for each slot, and the totals of the engine below.

    Signals:
        action(str, int): "save", "restore" or "erase", and the slot.
        chosen(int): show this conversation.
    """

    action = Signal(str, int)
    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("scrolled")
        self.cards: list[SlotCard] = []
        self._slots: Sequence[SlotView] = ()
        self.lead = label("", "secondary", self)
        self.lead.setWordWrap(True)
        self.totals = label("", "secondary", self)
        self.totals.setWordWrap(True)
        self._box = QVBoxLayout(self)
        self._box.setContentsMargins(theme.px(16), theme.px(12), theme.px(14), theme.px(16))
        self._box.setSpacing(theme.px(8))
        self._box.addWidget(self.lead)
        self._box.addWidget(self.totals)
        self._box.addStretch(1)

    def show_slots(
        self, slots: Sequence[SlotView], title_of: Callable[[int], str], totals: str
    ) -> None:
        """Show all slots; `title_of` names a conversation, `totals` is the line below them."""
        self._slots = slots
        lead = tr("A slot remembers one conversation, so that it answers at once.")
        _set_text(self.lead, lead if slots else tr("No model is loaded, so there are no slots."))
        while len(self.cards) > len(slots):
            self.cards.pop().deleteLater()
        while len(self.cards) < len(slots):
            self._add_card()
        for card, slot in zip(self.cards, slots, strict=True):
            title = title_of(slot.conversation_id) if slot.conversation_id else ""
            card.show_slot(slot, title)
        _set_text(self.totals, totals)

    def _add_card(self) -> None:
        number = len(self.cards)
        card = SlotCard(number, self)
        card.action.connect(lambda name, number=number: self.action.emit(name, number))
        card.opened.connect(lambda number=number: self._choose(number))
        self.cards.append(card)
        self._box.insertWidget(number + 1, card)

    def _choose(self, number: int) -> None:
        conversation_id = self._slots[number].conversation_id
        if conversation_id:
            self.chosen.emit(conversation_id)


def _set_text(shown: QLabel, text: str) -> None:
    """Set a label's text only when it is another one: each setting lays the panel out again."""
    if shown.text() != text:
        shown.setText(text)
