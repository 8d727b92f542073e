"""DRY worked out by hand: copies, breakers inside and over tokens, and the borders of messages."""

import numpy as np
import pytest

from engine.params import SamplingParams
from engine.sampling import SamplerChain
from tests.fakes.numbered_vocab import NumberedVocab

WORDS = [b"the", b" cat", b" sat", b".", b"\n", b"x\n", b" on", b"<|user|>", b"\n\n", b"a.\n"]
THE, CAT, SAT, DOT, LINE, X_LINE, ON, USER, LINES, A_DOT_LINE = range(10)


def dry(history, breakers, allowed=2, **options):
    """Return what DRY subtracts from each token's logit after a history, only what it changes."""
    params = SamplingParams(
        samplers=["dry"],
        dry_multiplier=2.0,
        dry_base=3.0,
        dry_allowed_length=allowed,
        dry_sequence_breakers=list(breakers) or ["\0"],
        **options,
    )
    chain = SamplerChain(params, NumberedVocab(len(WORDS), texts=WORDS))
    chain.accept_all(history)
    chain.apply(np.zeros(len(WORDS), np.float32))
    changed = -chain.candidates().logits
    return {token: float(x) for token, x in enumerate(changed) if x}


def test_dry_grows_with_the_length_of_the_copy():
    # The copy of "the cat" is 2 long: 2 * 3^(2-2); of "the cat sat" 3 long: 2 * 3^(3-2).
    assert dry([THE, CAT, SAT, THE, CAT], "") == {SAT: 2.0}
    assert dry([THE, CAT, SAT, DOT, THE, CAT, SAT], "") == {DOT: 6.0}
    assert dry([THE, CAT, SAT, THE, CAT], "", allowed=1) == {SAT: 6.0}
    assert dry([THE, CAT, SAT, THE, CAT], "", allowed=3) == {}


def test_dry_takes_the_longest_of_several_copies_for_each_token():
    # After "sat the cat" came DOT once (copy of 3), after "the cat" also ON (copy of 2).
    history = [SAT, THE, CAT, DOT, ON, THE, CAT, ON, SAT, THE, CAT]
    assert dry(history, "") == {DOT: 6.0, ON: 2.0}


def test_dry_counts_overlapping_copies():
    # "x x x x": tok(0..) = x x x x, R[1] = 3 (clamped by the end), followed by x: 2 * 3^(3-2).
    assert dry([SAT, SAT, SAT, SAT], "") == {SAT: 6.0}


def test_dry_stops_at_a_breaker_and_spares_it():
    # The newest DOT ends what may be copied: "the cat" after it is 2 long, without the DOT 3.
    history = [DOT, THE, CAT, SAT, DOT, THE, CAT]
    assert dry(history, "") == {SAT: 6.0}
    assert dry(history, ".") == {SAT: 2.0}
    # What would be penalized is itself a breaker, alone or inside a token: never.
    assert dry([THE, CAT, DOT, THE, CAT], "") == {DOT: 2.0}
    assert dry([THE, CAT, DOT, THE, CAT], ".") == {}
    assert dry([THE, CAT, X_LINE, THE, CAT], "\n") == {}


def test_a_breaker_may_be_spread_over_tokens():
    # ".\n" is DOT then LINE: rep_limit counts from behind its tail.
    history = [DOT, LINE, THE, CAT, SAT, DOT, LINE, THE, CAT]
    assert dry(history, "") == {SAT: 2 * 3.0**2}
    assert dry(history, [".\n"]) == {SAT: 2.0}
    # A DOT that is not followed by LINE is no breaker, neither to stop at nor to be spared.
    history = [DOT, ON, THE, CAT, SAT, DOT, ON, THE, CAT]
    assert dry(history, [".\n"]) == {SAT: 2 * 3.0**2}
    assert dry([THE, CAT, DOT, THE, CAT], [".\n"]) == {DOT: 2.0}
    # The breaker inside one token needs no tail.
    history = [A_DOT_LINE, THE, CAT, SAT, A_DOT_LINE, THE, CAT]
    assert dry(history, [".\n"]) == {SAT: 2.0}


def test_dry_reaches_over_messages_unless_their_border_is_a_breaker():
    turns = [USER, THE, CAT, SAT, LINES, USER, THE, CAT]
    assert dry(turns, "") == {SAT: 6.0}  # "<|user|> the cat"
    assert dry(turns, ["\n"]) == {SAT: 6.0}  # LINES is not inside the copy
    assert dry(turns, ["<|user|>"]) == {SAT: 2.0}  # nor is anything before the border
    # A turn that has just begun has copied nothing yet, however the last one began.
    assert dry([USER, THE, CAT, LINES, USER], ["<|user|>"], allowed=1) == {}
    assert dry([USER, THE, CAT, LINES, USER], "", allowed=1) == {THE: 2.0}


def test_dry_sees_only_the_last_n():
    history = [THE, CAT, SAT, ON, DOT, THE, CAT]
    assert dry(history, "") == {SAT: 2.0}
    assert dry(history, "", dry_penalty_last_n=6) == {}  # "the" of the first copy is gone
    assert dry([THE, CAT], "") == {}  # N <= allowed


def test_a_dry_penalty_stops_growing_where_f32_ends():
    # base 3: floor(88.7228391 / ln 3) = 80, however much longer the copy is.
    assert dry([SAT] * 300, "", dry_penalty_last_n=300)[SAT] == pytest.approx(2 * 3.0**80)
    options = dict(dry_multiplier=1e-30, dry_base=3.0, dry_penalty_last_n=300)
    chain = SamplerChain(SamplingParams(samplers=["dry"], **options), NumberedVocab(3))
    chain.accept_all([1] * 300)
    chain.apply(np.zeros(3, np.float32))
    assert -chain.candidates().logits[1] == pytest.approx(1e-30 * 3.0**80, rel=1e-4)
