"""Design tokens for light and dark, and what Qt needs of them: palette, fonts, stylesheet."""

from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

from app.ui.stylesheet import stylesheet

FONTS = Path(__file__).resolve().parents[2] / "resources" / "fonts"
# Faces that fontconfig hands out when a desktop chose none: there the shipped face looks better.
_NO_CHOICE = ("DejaVu Sans", "Sans Serif", "Sans", "Bitstream Vera Sans", "")
_CODE_FACES = ("JetBrains Mono", "SF Mono", "Cascadia Mono", "Consolas", "DejaVu Sans Mono")


@dataclass(frozen=True)
class Tokens:
    """The colours of one appearance, as #rrggbb."""

    name: str
    background: str
    sidebar: str
    card: str
    line: str
    text: str
    muted: str
    soft: str
    faint: str
    accent: str
    accent_text: str
    accent_background: str
    own: str
    code: str
    on_accent: str
    good: str
    bad: str
    string: str
    number: str
    comment: str
    function: str


LIGHT = Tokens(
    name="light",
    background="#FAF7F2",
    sidebar="#F3EEE7",
    card="#FFFFFF",
    line="#E6DED4",
    text="#2A2521",
    muted="#857A70",
    soft="#6F655C",
    faint="#B8ADA2",
    accent="#C2502F",
    accent_text="#B0452A",
    accent_background="#F6E3DA",
    own="#F0E8DE",
    code="#F5F0E9",
    on_accent="#FFFFFF",
    good="#4E7A4A",
    bad="#A8321F",
    string="#4F6F3A",
    number="#8A5A12",
    comment="#756A60",
    function="#7A4A86",
)
DARK = Tokens(
    name="dark",
    background="#1D1A18",
    sidebar="#181513",
    card="#262220",
    line="#38322E",
    text="#ECE5DD",
    muted="#9C9188",
    soft="#A79C93",
    faint="#665C55",
    accent="#E27A56",
    accent_text="#E98A68",
    accent_background="#3A2720",
    own="#2C2723",
    code="#141211",
    on_accent="#1D1A18",
    good="#8DB784",
    bad="#F08A72",
    string="#A9C08A",
    number="#DDB26A",
    comment="#9C9188",
    function="#C9A2D6",
)


class Theme(QObject):
    """The appearance in force: follows the system or the person's choice, and zooms everything.

    Decision: `muted` has a contrast of 3.9 : 1 on the light page, enough for labels and marks;
    secondary sentences that must be read use `soft`, which has 5 : 1 or more in both.

    Signals:
        changed: colours or sizes are different now; whoever paints by hand repaints.
    """

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.choice = "system"
        self.zoom = 1.0
        self.animated = True
        self.tokens = LIGHT
        self.text_face = ""
        self.code_face = ""

    def start(self, application: QApplication, choice: str = "system", zoom: float = 1.0) -> None:
        """Take over palette, font and stylesheet of the application and follow the system."""
        self._choose_faces()
        self.zoom = zoom
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._on_scheme_changed)
        application.setStyle("Fusion")
        self.choose(choice)

    def choose(self, choice: str) -> None:
        """Use "light", "dark" or "system" from now on."""
        self.choice = choice
        schemes = {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}
        QGuiApplication.styleHints().setColorScheme(schemes.get(choice, Qt.ColorScheme.Unknown))
        self.apply()

    def set_zoom(self, zoom: float) -> None:
        """Scale every size; 1.0 is the design size, the range is 0.7 to 2."""
        self.zoom = min(2.0, max(0.7, round(zoom, 2)))
        self.apply()

    def set_code_face(self, face: str) -> None:
        """Use a face for code; an empty or unknown one means the built-in choice."""
        families = set(QFontDatabase.families())
        wanted = (face, *_CODE_FACES)
        self.code_face = next((name for name in wanted if name in families), "monospace")
        self.apply()

    def px(self, length: float) -> int:
        """Return a design length in pixels at this zoom, at least 1."""
        return max(1, round(length * self.zoom))

    def color(self, token: str) -> QColor:
        """Return the colour of a token by name."""
        return QColor(getattr(self.tokens, token))

    def font(self, size: float = 14, weight: int = 400, code: bool = False) -> QFont:
        """Return a font of `size` design pixels; weight 400, 500 or 600; the code face if asked."""
        font = QFont(self.code_face if code else self.text_face)
        font.setPixelSize(self.px(size))
        font.setWeight(QFont.Weight(weight))
        font.setStyleStrategy(QFont.StyleStrategy.PreferAntialias)
        if code:
            font.setStyleHint(QFont.StyleHint.Monospace)
            font.setFixedPitch(True)
        return font

    def is_dark(self) -> bool:
        """Tell whether the dark colours are in force."""
        return self.tokens is DARK

    def apply(self) -> None:
        """Hand palette, font and stylesheet to the application and tell the painters."""
        if self.choice in ("light", "dark"):
            self.tokens = DARK if self.choice == "dark" else LIGHT
        else:
            dark = QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark
            self.tokens = DARK if dark else LIGHT
        application = QApplication.instance()
        if isinstance(application, QApplication):
            application.setPalette(self._palette())
            application.setFont(self.font())
            application.setStyleSheet(stylesheet(self))
        self.changed.emit()

    def _on_scheme_changed(self) -> None:
        if self.choice == "system":
            self.apply()

    def _choose_faces(self) -> None:
        if not self.text_face:
            system = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont).family()
            for file in sorted(FONTS.glob("*.[ot]tf")):
                QFontDatabase.addApplicationFont(str(file))
            families = set(QFontDatabase.families())
            plain = system in _NO_CHOICE or system not in families
            self.text_face = "Inter" if plain and "Inter" in families else system
            self.code_face = next((face for face in _CODE_FACES if face in families), "monospace")

    def _palette(self) -> QPalette:
        palette, role = QPalette(), QPalette.ColorRole
        colors = {
            role.Window: "background",
            role.Base: "card",
            role.AlternateBase: "sidebar",
            role.Button: "card",
            role.ToolTipBase: "card",
            role.WindowText: "text",
            role.Text: "text",
            role.ButtonText: "text",
            role.ToolTipText: "text",
            role.BrightText: "on_accent",
            role.PlaceholderText: "soft",
            role.Highlight: "accent",
            role.HighlightedText: "on_accent",
            role.Accent: "accent",
            role.Link: "accent_text",
            role.LinkVisited: "accent_text",
            role.Mid: "line",
            role.Midlight: "line",
            role.Dark: "line",
            role.Light: "card",
            role.Shadow: "line",
        }
        for which, token in colors.items():
            palette.setColor(which, self.color(token))
        for which in (role.WindowText, role.Text, role.ButtonText):
            palette.setColor(QPalette.ColorGroup.Disabled, which, self.color("faint"))
        return palette


theme = Theme()
