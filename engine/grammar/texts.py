"""Whether a short text matches a node, in time that grows with the text alone."""

from engine.errors import GrammarError
from engine.grammar.positions import Positions, TooManyPositions
from engine.grammar.rules import Node, empty


def matches(node: Node, text: str) -> bool:
    """Whether a node without references and tokens matches all of a text."""
    try:
        automaton = Positions.of(node)
    except TooManyPositions as error:
        raise GrammarError(
            "A pattern is too large to be compared with a name: shorten its repetitions."
        ) from error
    if not text:
        return empty(node)
    here = automaton.first
    for char in text[:-1]:
        here = {n for p in _reading(automaton, here, ord(char)) for n in automaton.after[p]}
    return bool(_reading(automaton, here, ord(text[-1])) & automaton.last)


def _reading(automaton: Positions, positions: set[int], code: int) -> set[int]:
    return {p for p in positions if any(low <= code <= high for low, high in automaton.sets[p])}
