"""Code colours: Pygments tokens mapped to the theme's few code colours."""

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pygments.lexer import Lexer

# Longer code is shown plain: colours are not worth a pause.
MAX_CHARACTERS = 60_000
_COLORS = (
    ("Comment", "comment"),
    ("Literal.String.Doc", "comment"),
    ("Literal.String", "string"),
    ("Literal.Number", "number"),
    ("Keyword", "accent_text"),
    ("Operator.Word", "accent_text"),
    ("Name.Function", "function"),
    ("Name.Class", "function"),
    ("Name.Decorator", "number"),
    ("Name.Builtin", "function"),
    ("Name.Tag", "accent_text"),
    ("Name.Attribute", "number"),
    ("Generic.Deleted", "bad"),
    ("Generic.Inserted", "good"),
)


def color_spans(code: str, language: str) -> list[tuple[int, int, str]]:
    """Return (start, length, color token) of everything in `code` that is not plain text.

    An unknown language gives an empty list; offsets count UTF-16 units, as Qt does.
    """
    lexer = _lexer(language.lower())
    if lexer is None or len(code) > MAX_CHARACTERS:
        return []
    spans: list[tuple[int, int, str]] = []
    start = 0
    for kind, text in lexer.get_tokens(code):
        length = len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
        color = _color(str(kind)[6:])
        if color and not text.isspace():
            spans.append((start, length, color))
        start += length
    return spans


def warm_up() -> None:
    """Import what the first answer with code will need; for a thread beside the window."""
    from app.ui.markdown import parse

    parse("- warm `up`")
    color_spans("x = 1", "python")


@lru_cache(maxsize=64)
def _lexer(language: str) -> "Lexer | None":
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False) if language else None
    except ClassNotFound:
        return None


@lru_cache(maxsize=512)
def _color(kind: str) -> str:
    return next((color for prefix, color in _COLORS if kind.startswith(prefix)), "")
