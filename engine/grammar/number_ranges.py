"""Numbers at or above a bound, as regular expressions over plain decimals."""

from fractions import Fraction

from engine.grammar.json_text import PLAIN_NUMBER, decimals

_REST = r"(?:\.[0-9]+)?"
_NOTHING = r"[^\x{0}-\x{10FFFF}]"


def at_least(bound: Fraction, *, exclusive: bool) -> str | None:
    """Return plain decimals that are >= (or >) a bound; None for a bound without an end."""
    if bound < 0 or (bound == 0 and not exclusive):
        below = _magnitudes(-bound, above=False, equal=not exclusive)
        return None if below is None else f"(?:-(?:{below})|{_unsigned()})"
    return _magnitudes(bound, above=True, equal=not exclusive)


def at_most(bound: Fraction, *, exclusive: bool) -> str | None:
    """Return plain decimals that are <= (or <) a bound; None for a bound without an end."""
    if bound > 0 or (bound == 0 and not exclusive):
        below = _magnitudes(bound, above=False, equal=not exclusive)
        zero = r"0(?:\.0+)?"
        return None if below is None else f"(?:{below}|-(?:{_unsigned()})|-?{zero})"
    found = _magnitudes(-bound, above=True, equal=not exclusive)
    return None if found is None else f"-(?:{found})"


def _unsigned() -> str:
    return PLAIN_NUMBER.removeprefix("-?")


def _magnitudes(bound: Fraction, *, above: bool, equal: bool) -> str | None:
    """Return unsigned decimals above (or below) a bound of 0 or more, and equal to it or not."""
    text = decimals(bound)
    if text is None:
        return None
    whole, _, part = text.partition(".")
    options = [_shorter_or_longer(whole, above)]
    for i, digit in enumerate(whole):
        is_first_of_more = i == 0 and len(whole) > 1
        options.append(_differs(whole[:i], digit, len(whole) - i - 1, above, is_first_of_more))
    options += _with_part(whole, part, above, equal)
    found = "|".join(option for option in options if option)
    return f"(?:{found})" if found else _NOTHING


def _with_part(whole: str, part: str, above: bool, equal: bool) -> list[str]:
    """Decimals with the whole number of the bound, which its part behind the point decides."""
    options: list[str] = []
    if part:
        options += [
            whole + r"\." + part[:i] + _digits(digit, above) + "[0-9]*"
            for i, digit in enumerate(part)
            if _digits(digit, above)
        ]
        if not above:
            options.append(whole)
            options += [whole + r"\." + part[:i] for i in range(1, len(part))]
        else:
            options.append(whole + r"\." + part + "[0-9]*[1-9][0-9]*")
        options += [whole + r"\." + part + "0*"] if equal else []
    else:
        options += [whole + r"\.[0-9]*[1-9][0-9]*"] if above else []
        options += [whole + r"(?:\.0+)?"] if equal else []
    return options


def _shorter_or_longer(whole: str, above: bool) -> str:
    n = len(whole)
    if above:
        return f"[1-9][0-9]{{{n},}}{_REST}"
    if n == 1:
        return ""
    return f"0{_REST}|[1-9][0-9]{{0,{n - 2}}}{_REST}"


def _differs(prefix: str, digit: str, n_rest: int, above: bool, leads: bool) -> str:
    """Whole numbers of equal length that leave the bound at one digit."""
    digits = _digits(digit, above, 1 if leads else 0)
    return f"{prefix}{digits}[0-9]{{{n_rest}}}{_REST}" if digits else ""


def _digits(digit: str, above: bool, lowest: int = 0) -> str:
    low, high = (int(digit) + 1, 9) if above else (lowest, int(digit) - 1)
    return f"[{low}-{high}]" if low <= high else ""
