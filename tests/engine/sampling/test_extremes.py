"""Chains under every extreme value: a token that is allowed, finite numbers, or a defined error."""

import math
import random

import numpy as np
import pytest

from engine.errors import InternalError, RequestError
from engine.grammar import Constraint, TokenTable
from engine.params import SamplingParams
from engine.sampling import SAMPLERS, SamplerChain, rank_after
from engine.server.constrained import ConstrainedSampler
from tests.fakes.numbered_vocab import NumberedVocab
from tests.make.small_vocab import SmallVocab

NEVER = -math.inf
NUMBERS = [0.0, 1e-45, 1e-300, 1e-30, -1e-3, -1.0, 0.5, 1.0, 1.0000005, 2.0, 50.0, 1e10, 1e30]
NUMBERS += [3.4e38, 1e38, -1e38, 1e300, -1e300, -3.4e38]
FREE = (
    "temperature dynatemp_range dynatemp_exponent top_p min_p typical_p top_n_sigma"
    " xtc_probability xtc_threshold repeat_penalty presence_penalty frequency_penalty"
    " dry_multiplier dry_base mirostat_tau mirostat_eta adaptive_target adaptive_decay"
).split()
WHOLE = {
    **dict.fromkeys(("repeat_last_n", "dry_penalty_last_n"), (0, 1, 5, 2**31 - 1)),
    **dict(top_k=(0, 1, 2, 2**31 - 1), dry_allowed_length=(0, 1, 2, 2**31 - 1)),
    **dict(min_keep=(0, 1, 3, 2**31 - 1), mirostat=(0, 0, 0, 1, 2)),
}
BIASES = [NEVER, math.inf, 1e308, -1e308, 5.0, False]


def random_params(rng, n):
    options = {name: rng.choice(NUMBERS) for name in rng.sample(FREE, rng.randint(0, 6))}
    options |= {name: rng.choice(v) for name, v in WHOLE.items() if rng.random() < 0.4}
    names = [name for name in SAMPLERS if name != "mirostat"]
    options["samplers"] = rng.choices(names, k=rng.randint(0, 8))
    if rng.random() < 0.3:
        options["logit_bias"] = [(rng.randrange(n), rng.choice(BIASES)) for _ in range(3)]
    return SamplingParams(seed=1, **options)


def random_row(rng, n):
    draws = np.random.default_rng(rng.randrange(1 << 30))
    row = 3 * draws.normal(size=n)
    kind = rng.choice(["normal", "extreme", "banned", "huge", "flat", "one"])
    if kind == "extreme":
        row = draws.choice([0, 1, -1, 3.4e38, -3.4e38, 1e-45, 1e38, -1e38], size=n)
    elif kind == "banned":
        row[draws.random(n) < 0.6] = NEVER
    elif kind == "huge":
        row *= 1e37
    elif kind == "flat":
        row *= 0
    elif kind == "one":
        row[:] = NEVER
        row[rng.randrange(n)] = rng.choice([0, -3, 3e38, -3e38])
    return row.astype(np.float32)


def may_be_refused(row, params):
    """Whether nothing is allowed, or what is allowed is banned or about to overflow."""
    banned = any(bias <= -1e37 for _, bias in params.logit_bias)
    return banned or np.isneginf(row).all() or row.max() < -1e37


def check_step(chain, row, params):
    token = chain.apply(row)
    assert 0 <= token < len(row) and row[token] > NEVER
    left = chain.candidates()
    assert token in left.ids
    assert np.isfinite(left.probs).all() and (left.probs >= 0).all()
    assert not np.isnan(left.logits).any() and not np.isposinf(left.logits).any()
    if not {"infill", "greedy"} & set(params.samplers):
        assert left.probs.sum() == pytest.approx(1, abs=1e-3)
    ranking = rank_after(chain, token, 3)
    assert np.isfinite(ranking.logprobs).all() and math.isfinite(ranking.logprob)
    chain.accept(token)


@pytest.mark.parametrize("seed", range(6))
def test_any_chain_with_any_number(seed):
    rng, n_refused = random.Random(seed), 0
    for _ in range(300):
        n = rng.choice([1, 2, 3, 5, 17, 40, 2000])
        try:
            params = random_params(rng, n)
        except RequestError:
            continue
        vocab = NumberedVocab(n, eog_ids=[0] if rng.random() < 0.5 else [])
        chain, row = SamplerChain(params, vocab), random_row(rng, n)
        chain.accept_all(rng.randrange(-2, n + 2) for _ in range(rng.randint(0, 12)))
        try:
            for _ in range(3):
                check_step(chain, row, params)
        except RequestError:
            assert may_be_refused(row, params), params
            n_refused += 1
    assert n_refused < 150


def left_of(row, history=(), **options):
    chain = SamplerChain(SamplingParams(seed=1, **options), NumberedVocab(len(row)))
    chain.accept_all(history)
    token = chain.apply(np.array(row, np.float32))
    return token, chain.candidates()


@pytest.mark.parametrize("penalty", [1e-300, 1e-45, 1e300])
def test_a_penalty_never_revives_a_banned_token(penalty):
    """-inf times 0, which a tiny factor is in f32, was taken for the largest logit."""
    options = dict(repeat_penalty=penalty, samplers=["penalties"])
    token, left = left_of([NEVER, -2.0, NEVER], [0, 2], **options)
    assert token == 1 and np.isneginf(left.logits[[0, 2]]).all()


@pytest.mark.parametrize(
    "options",
    [
        {"frequency_penalty": 3.4e38},
        {"presence_penalty": 1e300},
        {"repeat_penalty": 1e300},
        {"dry_multiplier": 1e300, "dry_base": 4.0},
    ],
)
def test_a_finite_penalty_never_forbids(options):
    """On everything it is the same for all; it used to leave nothing to choose from."""
    token, left = left_of(
        [-1.0, -1.0], [0, 1, 0, 1, 0, 1], samplers=["penalties", "dry"], **options
    )
    assert token in (0, 1) and np.isfinite(left.logits).all()


def test_a_negative_dry_multiplier_is_a_reward_and_stays_finite():
    options = dict(dry_multiplier=-1e38, dry_base=4.0, samplers=["dry"])
    token, left = left_of([0.0] * 4, [1, 2, 3, 1, 2, 3, 1, 2], **options)
    assert token == 3 and np.isfinite(left.logits).all()


@pytest.mark.parametrize("bias", [math.inf, 1e308, 5.0])
def test_no_bias_revives_what_the_model_forbids(bias):
    token, left = left_of([NEVER, 0.0], samplers=[], logit_bias=[(0, bias)])
    assert token == 1 and left.logits[0] == NEVER


def test_finite_biases_neither_forbid_nor_overflow():
    for bias in (-1e308, 1e308):
        _, left = left_of([1e38, -1e38], samplers=[], logit_bias=[(0, bias), (1, bias), (1, bias)])
        assert np.isfinite(left.logits).all()


def test_more_biases_than_anyone_can_mean_are_refused():
    with pytest.raises(RequestError, match="logit_bias"):
        left_of([0.0] * 9, logit_bias=[(i, 1.0) for i in range(10_020)])
    with pytest.raises(RequestError, match="logit_bias"):
        left_of([0.0] * 20_000, logit_bias={f"<{i}>": 1.0 for i in range(10_001)})


@pytest.mark.parametrize("options", [{}, {"dynatemp_range": 1e300}, {"dynatemp_exponent": -3.0}])
def test_an_endless_temperature_makes_the_allowed_tokens_alike(options):
    options = dict(temperature=1e300, samplers=["temperature"], **options)
    _, left = left_of([5.0, NEVER, -5.0, 0.0], **options)
    assert dict(zip(left.ids.tolist(), left.probs.tolist(), strict=True)) == pytest.approx(
        {0: 1 / 3, 1: 0.0, 2: 1 / 3, 3: 1 / 3}
    )


@pytest.mark.parametrize("temperature", [0.0, -1.0, -1e300, 1e-300, 1e-45])
def test_no_temperature_takes_the_likeliest(temperature):
    for more in ({}, {"samplers": ["temperature"]}, {"dynatemp_range": 0.0}):
        token, left = left_of([1.0, 3.0, 2.0], temperature=temperature, **more)
        assert token == 1 and left.probs.max() == 1.0


BYTES = SmallVocab()


class ByteChain(NumberedVocab):
    """The numbered vocabulary with the tokens of BYTES."""

    def __init__(self):
        super().__init__(BYTES.n_tokens, BYTES.eog_ids, BYTES.pieces)


def held(grammar, first=False, **options):
    matcher = Constraint.from_gbnf(grammar).begin(TokenTable.of(BYTES))
    chain = SamplerChain(SamplingParams(seed=1, **options), ByteChain())
    return ConstrainedSampler(chain, matcher, grammar_first=first)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"logit_bias": [(ord("a"), False)]},
        {"logit_bias": {"a": NEVER}},
        {"logit_bias": [(ord("a"), False)], "temperature": 0.0},
        {"logit_bias": [(ord("a"), False)], "top_k": 1, "min_p": 1.0},
        {"logit_bias": [(ord("a"), False)], "mirostat": 2},
        {"logit_bias": [(ord("a"), False)], "samplers": ["infill", "greedy"]},
    ],
)
def test_a_grammar_that_wants_what_is_banned_is_an_error(options, first):
    sampler = held('root ::= "a"', first, **options)
    with pytest.raises(RequestError, match="Every token is forbidden"):
        sampler.apply(np.zeros(BYTES.n_tokens, np.float32))


def test_a_grammar_whose_end_is_ignored_is_an_error_at_its_end():
    sampler = held('root ::= "a"', ignore_eos=True)
    sampler.accept(sampler.apply(np.zeros(BYTES.n_tokens, np.float32)))
    assert sampler.must_end  # the loop asks this first
    with pytest.raises(RequestError, match="Every token is forbidden"):
        sampler.apply(np.zeros(BYTES.n_tokens, np.float32))


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_scores_that_are_no_numbers_are_an_error_under_a_grammar_too(bad, first):
    sampler = held("root ::= [a-z]", first)
    row = np.zeros(BYTES.n_tokens, np.float32)
    row[ord("q")] = bad
    with pytest.raises(InternalError, match="not a number"):
        sampler.apply(row)
    assert sampler.apply(np.zeros(BYTES.n_tokens, np.float32)) in set(b"abcdefghijklmnopqrstuvwxyz")
