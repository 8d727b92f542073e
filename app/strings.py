"""Every visible sentence passes through tr(): English is the key, other languages are tables."""

_table: dict[str, str] = {}


def tr(sentence: str, /, **values: object) -> str:
    """Return `sentence` in the chosen language with its {placeholders} filled in."""
    translated = _table.get(sentence, sentence)
    return translated.format(**values) if values else translated


def use_language(table: dict[str, str]) -> None:
    """Replace the table of translations; an empty one means English."""
    _table.clear()
    _table.update(table)


def count(number: int) -> str:
    """Return a whole number with grouped digits, as in 12,480."""
    return f"{number:,}"


def megabytes(n_bytes: int) -> str:
    """Return a size in decimal units, as disks and files state it: 98 MB, 4.7 GB."""
    if n_bytes >= 999_500_000:
        return f"{n_bytes / 1e9:.1f} GB"
    return f"{max(1, round(n_bytes / 1e6))} MB" if n_bytes else "0 MB"


def seconds(duration: float) -> str:
    """Return a duration in words: 12 s, 3 min 20 s."""
    whole = max(0, round(duration))
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"
