"""Which way a text runs: its lines in groups that begin at the same side of the page."""

import re
import unicodedata
from itertools import groupby

_MAY_RUN_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff]")


def runs_left(line: str) -> bool | None:
    """Tell whether a line begins at the right; None when no letter says."""
    for letter in line:
        way = unicodedata.bidirectional(letter)
        if way in ("R", "AL"):
            return True
        if way == "L":
            return False
    return None


def by_direction(text: str) -> list[str]:
    """Return the lines of a text in parts of one direction; what says nothing stays with before."""
    if not _MAY_RUN_LEFT.search(text):
        return [text]
    ways: list[tuple[bool, str]] = []
    for line in text.split("\n"):
        way = runs_left(line)
        before = ways[-1][0] if ways else False
        ways.append((before if way is None else way, line))
    return ["\n".join(line for _, line in part) for _, part in groupby(ways, lambda w: w[0])]
