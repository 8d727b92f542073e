"""The matching library behind the room: its limits, its errors, and a check for empty sets."""

import functools

import numpy as np

from engine.errors import GrammarError
from engine.grammar.bindings import Limits, State, Tokenizer

_LIMITS = Limits(
    max_items_in_row=2_000,
    initial_lexer_fuel=2_000_000,
    step_lexer_fuel=1_000_000,
    step_max_items=200_000,
    max_lexer_states=100_000,
    max_grammar_size=500_000,
    precompute_large_lexemes=False,
    verbose_errors=False,
)
MAX_TEXT = 1_000_000  # characters of a grammar as the library reads it: half a second
# How a text is cut into tokens is the model's choice, also where only one text can follow.
_OPTIONS = '%llguidance {"no_forcing": true}\n'
_TOO_COMPLEX = (
    "fuel",
    "too many",
    "too complex",
    "limit",
    "too large",
    "too big",
    "exceed",
    "current row",
)


def begin(tokenizer: Tokenizer, lark: str) -> State:
    """Return the state at the beginning of a Lark grammar; raises GrammarError with the cause."""
    if len(lark) > MAX_TEXT:
        raise GrammarError(
            "The grammar is too large to be followed: shorten its names and texts, or split it."
        )
    made = State.begin(tokenizer, _OPTIONS + lark, _LIMITS)
    if made.is_error:
        raise library_error(made)
    return made


def library_error(state: State) -> GrammarError:
    """Return the error of a state that failed, as a sentence."""
    cause = state.error.strip().split("\n")[0][:200]
    if any(word in cause.lower() for word in _TOO_COMPLEX):
        return GrammarError(
            f"The grammar is too complex to be followed: shorten its repetitions ({cause})."
        )
    return GrammarError(f"The grammar cannot be followed: {cause}.")


@functools.cache
def byte_tokenizer() -> Tokenizer:
    """Return a vocabulary of the 256 bytes and an end, for questions about a grammar alone."""
    return Tokenizer([*(bytes([i]) for i in range(256)), b"\xff<end>"], [256])


def is_empty(body: str) -> bool:
    """Whether no text matches a Lark terminal; raises GrammarError if it is too complex."""
    lark = f"{_OPTIONS}start: T\nT: {body}\n"
    return not has_a_way(State.begin(byte_tokenizer(), lark, _LIMITS))


def has_a_way(state: State) -> bool:
    """Whether a state over bytes can end or go on; raises GrammarError if it is too complex."""
    if state.is_accepting:
        return True
    mask = np.zeros(9, np.uint32)
    state.mask(mask)
    if state.is_error:
        if "NoExtension" in state.error:
            return False
        raise library_error(state)
    return bool(mask[:8].any())
