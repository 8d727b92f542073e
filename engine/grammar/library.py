"""The matching library behind the room: its limits, its errors, and a check for empty sets."""

import functools

import llguidance

from engine.errors import GrammarError

_LIMITS = llguidance.LLParserLimits(
    max_items_in_row=2_000,
    initial_lexer_fuel=2_000_000,
    step_lexer_fuel=1_000_000,
    step_max_items=200_000,
    max_lexer_states=100_000,
    max_grammar_size=500_000,
    precompute_large_lexemes=False,
    verbose_errors=False,
)
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


def make_matcher(tokenizer: llguidance.LLTokenizer, lark: str) -> llguidance.LLMatcher:
    """Return a matcher at the beginning of a Lark grammar; raises GrammarError with the cause."""
    made = _matcher(tokenizer, lark)
    if made.is_error():
        raise library_error(made)
    return made


def _matcher(tokenizer: llguidance.LLTokenizer, lark: str) -> llguidance.LLMatcher:
    text = llguidance.LLMatcher.grammar_from_lark(_OPTIONS + lark)
    return llguidance.LLMatcher(tokenizer, text, log_level=0, limits=_LIMITS)


def library_error(matcher: llguidance.LLMatcher) -> GrammarError:
    """Return the error of a matcher that failed, as a sentence."""
    cause = matcher.get_error().strip().split("\n")[0][:200]
    if any(word in cause.lower() for word in _TOO_COMPLEX):
        return GrammarError(
            f"The grammar is too complex to be followed: shorten its repetitions ({cause})."
        )
    return GrammarError(f"The grammar cannot be followed: {cause}.")


@functools.cache
def byte_tokenizer() -> llguidance.LLTokenizer:
    """Return a vocabulary of the 256 bytes, for questions about a grammar alone."""
    return llguidance.LLTokenizer("byte")


def is_empty(body: str) -> bool:
    """Whether no text matches a Lark terminal; raises GrammarError if it is too complex."""
    return not has_a_way(_matcher(byte_tokenizer(), f"start: T\nT: {body}\n"))


def has_a_way(matcher: llguidance.LLMatcher) -> bool:
    """Whether a matcher over bytes can end or go on; raises GrammarError if it is too complex."""
    if matcher.is_accepting():
        return True
    mask = matcher.compute_bitmask()
    if matcher.is_error():
        if "NoExtension" in matcher.get_error():
            return False
        raise library_error(matcher)
    eos = byte_tokenizer().eos_token
    return any(bits & ~(1 << eos % 8 if i == eos // 8 else 0) for i, bits in enumerate(mask))
