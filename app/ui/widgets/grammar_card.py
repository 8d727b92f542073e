"""What an answer must be: a kind, a text, and a check of it as it is typed."""

from typing import Any

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QFontMetrics, QTextOption
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QVBoxLayout, QWidget

from app.services.constraint import hint
from app.strings import tr
from app.ui.theme import theme
from app.ui.widgets.choices import Choice
from app.ui.widgets.controls import label

KINDS = (
    ("", "Anything"),
    ("json", "JSON"),
    ("json_schema", "JSON Schema"),
    ("gbnf", "Grammar (GBNF)"),
    ("regex", "Regular expression"),
)
_PAUSE_MS = 250


class GrammarCard(QFrame):
    """Chooses what the next answers of a chat are held to.

    Signals:
        check_wanted(str, str): whether this kind and text can be kept should be told with `tell`.
        chosen(dict): kind and text that were checked and found good; {} for anything.
        drafted(dict): kind and text that stand there and are not kept; {} when there is no other.
    """

    check_wanted = Signal(str, str)
    chosen = Signal(dict)
    drafted = Signal(dict)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self.kind = Choice(self)
        self.kind.setAccessibleName(tr("What the answer must be"))
        self.kind.view().setAccessibleName(tr("Kinds of answers"))
        for key, words in KINDS:
            self.kind.addItem(tr(words), key)
        self.edit = QPlainTextEdit(self)
        self.edit.setAccessibleName(tr("Text of the schema, grammar or expression"))
        self.edit.setObjectName("field")
        self.edit.setTabChangesFocus(True)
        self.edit.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.edit.setFont(theme.font(13, code=True))
        self.edit.setFixedHeight(QFontMetrics(self.edit.font()).lineSpacing() * 8)
        self.verdict = label("", "secondary", self)
        self.verdict.setWordWrap(True)
        self._texts: dict[str, str] = {}
        self._shown_kind = "?"
        self._kept: dict[str, Any] = {}
        self._asked: tuple[str, str] = ("", "")
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(_PAUSE_MS)
        self._pause.timeout.connect(self._ask)
        self._slow = QTimer(self)  # a verdict that takes long is announced
        self._slow.setSingleShot(True)
        self._slow.setInterval(_PAUSE_MS)
        self._slow.timeout.connect(lambda: self._say("", tr("Checking…")))
        self.kind.activated.connect(lambda _: self._on_kind())
        self.edit.textChanged.connect(self._on_text)
        box = QVBoxLayout(self)
        box.setContentsMargins(theme.px(12), theme.px(9), theme.px(12), theme.px(10))
        box.setSpacing(theme.px(6))
        box.addWidget(label(tr("Answer as"), "subheading", self))
        for part in (self.kind, self.edit, self.verdict):
            box.addWidget(part)
        self.present({})

    def present(self, kept: dict[str, Any], draft: dict[str, Any] | None = None) -> None:
        """Show what a chat is held to, or the unfinished text that shall take its place.

        Nothing is chosen by it; a text that stands there already is not touched.
        """
        kept, shown = _sound(kept), _sound(draft) or _sound(kept)
        standing = {"kind": self._shown_kind, "text": self._text()}
        if kept == self._kept and standing == (shown or {"kind": "", "text": ""}):
            return
        self._slow.stop()
        self._kept, self._asked = kept, ("?", "")  # a verdict on its way is of another chat
        self._texts = {str(shown.get("kind", "")): str(shown.get("text", ""))}
        self._shown_kind = str(shown.get("kind", ""))
        self.kind.setCurrentIndex(max(0, self.kind.findData(self._shown_kind)))
        self._show_text()
        self._say("")
        if shown != kept:
            self._ask()

    def tell(self, kind: str, text: str, wrong: str) -> None:
        """Say what is wrong with a text, and keep it if nothing is; an older one is passed by."""
        if (kind, text) != self._asked:
            return
        self._slow.stop()
        self._say(wrong)
        kept = {"kind": kind, "text": text} if kind else {}
        if not wrong and kept != self._kept:
            self._kept = kept
            self.chosen.emit(kept)
            self.drafted.emit({})

    def _on_kind(self) -> None:
        self._texts[self._shown_kind] = self.edit.toPlainText()
        self._shown_kind = self.kind.currentData()
        self._show_text()
        self._say("")  # the verdict of another kind
        self._tell_draft()
        self._ask()

    def _on_text(self) -> None:
        self._tell_draft()
        self._pause.start()

    def _tell_draft(self) -> None:
        standing = {"kind": self._shown_kind, "text": self._text()}
        is_other = standing != (self._kept or {"kind": "", "text": ""})
        self.drafted.emit(standing if is_other else {})

    def _text(self) -> str:
        return "" if self._shown_kind in ("", "json") else self.edit.toPlainText()

    def _show_text(self) -> None:
        self.edit.blockSignals(True)
        self.edit.setPlainText(self._texts.get(self._shown_kind, ""))
        self.edit.blockSignals(False)
        self._pause.stop()
        self.edit.setVisible(self._shown_kind not in ("", "json"))

    def _ask(self) -> None:
        self._asked = self._shown_kind, self._text()
        self._slow.start()
        self.check_wanted.emit(*self._asked)

    def _say(self, wrong: str, note: str = "") -> None:
        """Show an error, or what the kind means; an unfinished text does not act."""
        held = tr(" The last good one is kept.") if wrong and self._kept else ""
        self.verdict.setText(wrong + held if wrong else note or hint(self._shown_kind))
        self.verdict.setObjectName("errorTitle" if wrong else "secondary")
        self.verdict.style().unpolish(self.verdict)
        self.verdict.style().polish(self.verdict)


def _sound(stored: Any) -> dict[str, Any]:
    """Return a kind and a text as they are stored, {} for anything else."""
    kinds = [kind for kind, _ in KINDS]
    if not isinstance(stored, dict) or stored.get("kind") not in kinds:
        return {}
    text = stored.get("text", "")
    return {"kind": stored["kind"], "text": text} if isinstance(text, str) else {}
