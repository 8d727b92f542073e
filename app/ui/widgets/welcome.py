"""The first card: models found on this machine, the starter model, and "drop a file here"."""

from typing import Any

from PySide6.QtCore import QModelIndex, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QProgressBar, QScrollArea, QVBoxLayout, QWidget

from app.strings import megabytes, tr
from app.ui.theme import theme
from app.ui.widgets.controls import button, label
from app.ui.widgets.model_list import MODEL, ModelList


class Welcome(QScrollArea):
    """What a person sees before there is a model.

    Signals:
        chosen(object): the path of a model to load.
        starter_wanted(), file_wanted(): get the starter model, open a file.
        cancelled(): the download should end.
    """

    chosen = Signal(object)
    starter_wanted = Signal()
    file_wanted = Signal()
    cancelled = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAccessibleName(tr("First steps"))
        page = QWidget()
        page.setObjectName("page")
        self.setWidget(page)
        self.card = QFrame(page)
        self.card.setObjectName("card")
        self.card.setMaximumWidth(theme.px(560))
        outer = QVBoxLayout(page)
        outer.setContentsMargins(theme.px(24), theme.px(24), theme.px(24), theme.px(24))
        outer.addStretch(1)
        middle = QHBoxLayout()
        middle.addStretch(1)
        middle.addWidget(self.card, 100)
        middle.addStretch(1)
        outer.addLayout(middle)
        outer.addStretch(2)
        self._fill()

    def _fill(self) -> None:
        box = QVBoxLayout(self.card)
        box.setContentsMargins(theme.px(28), theme.px(26), theme.px(28), theme.px(26))
        box.setSpacing(theme.px(10))
        box.addWidget(label(tr("Welcome to Inglenook"), "heading"))
        lead = label(
            tr("A model runs here, on this machine. Nothing you write leaves it."), "secondary"
        )
        lead.setWordWrap(True)
        box.addWidget(lead)
        box.addSpacing(theme.px(6))
        self.found_title = label(tr("FOUND ON THIS MACHINE"), "section")
        self.list = ModelList(self.card)
        self.list.clicked.connect(self._choose)
        self.list.activated.connect(self._choose)
        box.addWidget(self.found_title)
        box.addWidget(self.list)
        self._add_starter(box)
        self._add_drop(box)
        self.card.setMinimumWidth(theme.px(360))
        self.set_models([], True)

    def _add_starter(self, box: QVBoxLayout) -> None:
        self.starter_title = label(tr("START SMALL"), "section")
        self.starter_words = label("", "secondary")
        self.starter_words.setWordWrap(True)
        self.starter = button(tr("Get the starter model"), "primary")
        self.starter.clicked.connect(self._on_starter_clicked)
        self._is_fetching = False
        self.progress = QProgressBar(self.card)
        self.progress.setTextVisible(False)
        self.progress.setRange(0, 1000)
        self.progress.setAccessibleName(tr("Progress of the download"))
        self.progress.hide()
        box.addSpacing(theme.px(4))
        box.addWidget(self.starter_title)
        box.addWidget(self.starter_words)
        row = QHBoxLayout()
        row.addWidget(self.starter)
        row.addStretch(1)
        box.addLayout(row)
        box.addWidget(self.progress)
        self.show_starter(None)

    def _add_drop(self, box: QVBoxLayout) -> None:
        drop = QFrame(self.card)
        drop.setObjectName("drop")
        inside = QHBoxLayout(drop)
        inside.setContentsMargins(theme.px(16), theme.px(14), theme.px(16), theme.px(14))
        words = label(tr("Drop a .gguf file anywhere in this window"), "secondary")
        words.setWordWrap(True)
        inside.addWidget(words, 1)
        self.open = button(tr("Open a file…"))
        self.open.clicked.connect(self.file_wanted)
        inside.addWidget(self.open)
        box.addSpacing(theme.px(6))
        box.addWidget(drop)

    def set_models(self, models: list[Any], is_scanning: bool) -> None:
        """Offer the models that were found."""
        self.list.set_models(models)
        self.list.setFixedHeight(self.list.height_for(max(1, min(5, len(models)))))
        self.list.setVisible(bool(models))
        self.found_title.setVisible(is_scanning or bool(models))
        text = tr("LOOKING FOR MODELS…") if is_scanning else tr("FOUND ON THIS MACHINE")
        self.found_title.setText(text)

    def show_starter(self, starter: Any) -> None:
        """Offer the starter model: name, n_bytes, help, licence; None hides the offer."""
        for widget in (self.starter_title, self.starter_words, self.starter):
            widget.setVisible(starter is not None)
        if starter is not None:
            words = tr(
                "{name}, {size} to download, {licence}. {help}",
                name=starter.name,
                size=megabytes(starter.n_bytes),
                licence=starter.licence,
                help=tr(starter.help),
            )
            self.starter_words.setText(words)

    def show_progress(self, done: float | None, words: str = "") -> None:
        """Show how far the starter model is on its way, 0 to 1; None when it is not."""
        if self._is_fetching != (done is not None):
            self._is_fetching = done is not None
            self._name_starter()
        self.progress.setVisible(self._is_fetching)
        self.progress.setValue(round(1000 * (done or 0)))
        if words:
            self.starter_words.setText(words)

    def _name_starter(self) -> None:
        self.starter.setText(tr("Cancel") if self._is_fetching else tr("Get the starter model"))
        self.starter.setAccessibleName(self.starter.text())
        self.starter.setObjectName("" if self._is_fetching else "primary")
        self.starter.style().unpolish(self.starter)
        self.starter.style().polish(self.starter)

    def _on_starter_clicked(self) -> None:
        (self.cancelled if self._is_fetching else self.starter_wanted).emit()

    def _choose(self, index: QModelIndex) -> None:
        model = index.data(MODEL)
        if model is not None and not model.problem:
            self.chosen.emit(model.path)
