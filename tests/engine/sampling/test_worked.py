"""Samplers worked out by hand: each number here follows from the formula written beside it."""

import math

import numpy as np
import pytest

from engine.params import SamplingParams
from engine.sampling import SamplerChain
from tests.fakes.numbered_vocab import NumberedVocab
from tests.reference import sampling as twin

NEVER = -math.inf
OFF = dict(top_k=0, top_p=1.0, min_p=0.0, temperature=1.0)


def chain_of(samplers, n, vocab=None, **options):
    params = SamplingParams(**{**OFF, "seed": 1, "samplers": samplers, **options})
    return SamplerChain(params, vocab or NumberedVocab(n))


def probs_of(chain):
    left = chain.candidates()
    return dict(zip(left.ids.tolist(), left.probs.tolist(), strict=True))


def of_probs(*probs):
    with np.errstate(divide="ignore"):
        return np.log(np.array(probs, np.float32))


# ---------------------------------------------------------------- what does nothing
NOTHING = [
    ("?top-k", ["top_k"], {"top_k": 0}),
    ("?top-p", ["top_p"], {"top_p": 1.0}),
    ("?min-p", ["min_p"], {"min_p": 0.0}),
    ("?typical", ["typ_p"], {"typical_p": 1.0}),
    ("?typical", ["typ_p"], {"typical_p": 1.5}),
    ("?temp-ext", ["temperature"], {"temperature": 1.0}),
    ("?temp-ext", ["temperature"], {"temperature": 1.0, "dynatemp_range": -1.0}),
    ("?xtc", ["xtc"], {"xtc_probability": 0.0}),
    ("?xtc", ["xtc"], {"xtc_probability": 1.0, "xtc_threshold": 0.51}),
    ("?top-n-sigma", ["top_n_sigma"], {"top_n_sigma": -1.0}),
    ("?top-n-sigma", ["top_n_sigma"], {"top_n_sigma": 0.0}),
    ("?penalties", ["penalties"], {"repeat_penalty": 2.0, "repeat_last_n": 0}),
    ("?penalties", ["penalties"], {}),
    ("?dry", ["dry"], {"dry_multiplier": 0.0}),
    ("?dry", ["dry"], {"dry_multiplier": 1.0, "dry_penalty_last_n": 0}),
]


@pytest.mark.parametrize(("printed", "samplers", "options"), NOTHING)
def test_what_does_nothing_is_marked_and_does_nothing(printed, samplers, options):
    chain = chain_of(samplers, 5, **options)
    assert str(chain) == f"logits -> {printed} -> dist"
    chain.accept_all([1, 2, 1, 2, 1])
    row = np.array([0.5, 2.0, -1.0, 0.0, 1.0], np.float32)
    chain.apply(row)
    assert chain.candidates().ids.tolist() == [0, 1, 2, 3, 4]
    assert (chain.candidates().logits == row).all()


def test_temperature_with_only_a_range_and_a_bias_are_not_nothing():
    assert str(chain_of(["temperature"], 5, dynatemp_range=0.5)) == "logits -> temp-ext -> dist"
    assert "logit-bias" in str(chain_of([], 5, logit_bias=[(0, 1.0)]))
    assert "logit-bias" not in str(chain_of([], 5, logit_bias=[]))


# ---------------------------------------------------------------- penalties
def test_penalties_of_counts_signs_and_windows():
    options = dict(repeat_penalty=2.0, frequency_penalty=0.5, presence_penalty=0.25)
    chain = chain_of(["penalties"], 4, repeat_last_n=3, **options)
    chain.accept_all([3, 1, 0, 1])  # the last three: 1 twice, 0 once
    chain.apply(np.array([-1.0, 4.0, 0.0, 4.0], np.float32))
    # -1 * 2 - (1 * .5 + .25);  4 / 2 - (2 * .5 + .25);  not seen;  out of the window
    assert chain.candidates().logits.tolist() == [-2.75, 0.75, 0.0, 4.0]


# ---------------------------------------------------------------- top-n-sigma, typical
def test_top_n_sigma_leaves_banned_tokens_out_of_its_measure():
    # Over 4, 2, 0 the mean is 2 and the deviation sqrt(8/3) = 1.633; with bans it would be NaN.
    row = np.array([4.0, NEVER, 2.0, 0.0, NEVER], np.float32)
    for n, kept in ((1.0, {0}), (1.3, {0, 2}), (2.4, {0, 2}), (2.5, {0, 2, 3})):
        chain = chain_of(["top_n_sigma"], 5, top_n_sigma=n)
        chain.apply(row)
        assert {token for token, p in probs_of(chain).items() if p > 0} == kept
        assert len(chain.candidates().ids) == 5  # nothing is removed


def test_top_n_sigma_of_one_candidate_or_equal_ones_keeps_them():
    for row in ([3.0], [2.0, 2.0, 2.0], [NEVER, 1.0]):
        chain = chain_of(["top_n_sigma"], len(row), top_n_sigma=0.5)
        chain.apply(np.array(row, np.float32))
        assert sum(p > 0 for p in probs_of(chain).values()) == sum(x > NEVER for x in row)


def test_typical_with_banned_tokens():
    # p = .5 .25 .125 .125: H = 1.75 ln 2; |-ln p - H| / ln 2 = .75 .25 1.25 1.25, a ban is last.
    row = of_probs(0.5, 0.0, 0.25, 0.125, 0.125)
    for p, kept in ((0.2, [2]), (0.3, [2, 0]), (0.74, [2, 0]), (0.8, [2, 0, 3])):
        chain = chain_of(["typ_p", "greedy"], 5, typical_p=p)
        chain.apply(row)
        assert chain.candidates().ids.tolist() == kept
    chain = chain_of(["typ_p"], 5, typical_p=0.2, min_keep=4)
    chain.apply(row)
    assert sorted(chain.candidates().ids.tolist()) == [0, 2, 3, 4]


# ---------------------------------------------------------------- XTC
@pytest.mark.parametrize(
    ("threshold", "min_keep", "kept"),
    [
        (0.19, 0, [2, 3]),  # .4 and .3 go, .2 is the least obvious one
        (0.19, 2, [2, 3]),
        (0.19, 3, [0, 1, 2, 3]),  # would leave fewer than are to be kept
        (0.35, 0, [0, 1, 2, 3]),  # only one is obvious: nothing to drop
        (0.0, 0, [3]),
    ],
)
def test_xtc_drops_all_obvious_tokens_but_the_least(threshold, min_keep, kept):
    options = dict(xtc_probability=1.0, xtc_threshold=threshold, min_keep=min_keep)
    chain = chain_of(["xtc", "greedy"], 4, **options)
    chain.apply(of_probs(0.4, 0.3, 0.2, 0.1))
    assert chain.candidates().ids.tolist() == kept


def test_xtc_acts_by_the_draws_of_a_generator_of_its_own():
    # A draw is used up also where XTC then does nothing, but not for a single candidate.
    chain, draws = chain_of(["xtc"], 4, xtc_probability=0.5, xtc_threshold=0.19), twin.Generator(1)
    for i in range(40):
        chain.apply(of_probs(0.4, 0.3, 0.2, 0.1) if i % 3 else of_probs(0.97, 0.01, 0.01, 0.01))
        acts = draws.f32() <= 0.5 and i % 3 != 0
        assert len(chain.candidates().ids) == (2 if acts else 4)
    chain = chain_of(["top_k", "xtc"], 4, top_k=1, xtc_probability=0.5, xtc_threshold=0.19)
    for _ in range(9):
        chain.apply(of_probs(0.4, 0.3, 0.2, 0.1))
    chain.update(top_k=0)
    chain.apply(of_probs(0.4, 0.3, 0.2, 0.1))
    assert len(chain.candidates().ids) == (2 if twin.Generator(1).f32() <= 0.5 else 4)


# ---------------------------------------------------------------- temperature
@pytest.mark.parametrize("exponent", [1.0, 2.0, 0.5])
def test_dynamic_temperature_by_entropy(exponent):
    # t = .9 ± .6: between .3 and 1.5. Two of four are equally likely: H / Hmax = ln 2 / ln 4 = .5
    # so T = .3 + 1.2 * .5^e: .9 for 1, .6 for 2, 1.1485 for .5; with p = .5 .25 .125 .125 it is
    # 1.75 / 2 = .875, and T = .3 + 1.2 * .875^e.
    chain = chain_of(
        ["temperature"], 4, temperature=0.9, dynatemp_range=0.6, dynatemp_exponent=exponent
    )
    for row, share in (
        (of_probs(0.5, 0.5, 0, 0), 0.5),
        (of_probs(0.5, 0.25, 0.125, 0.125), 0.875),
    ):
        chain.apply(row)
        warmth = 0.3 + 1.2 * share**exponent
        logits = chain.candidates().logits
        assert logits[np.isfinite(logits)] == pytest.approx(
            np.sort(row[np.isfinite(row)])[::-1] / warmth, rel=1e-5
        )


def test_dynamic_temperature_below_zero_is_none():
    # t = .2 ± .6: the lowest is 0, not -.4; a certain model gives T = 0, which takes the best.
    chain = chain_of(["temperature"], 3, temperature=0.2, dynatemp_range=0.6)
    chain.apply(np.array([0.0, NEVER, NEVER], np.float32))
    assert probs_of(chain)[0] == 1.0


# ---------------------------------------------------------------- mirostat
def test_mirostat_2_drops_what_surprises_and_learns():
    # tau 1, so mu = 2 bits: -log2 .4 = 1.32, .3 = 1.74, .2 = 2.32, .1 = 3.32: two stay.
    chain = chain_of([], 4, mirostat=2, mirostat_tau=1.0, mirostat_eta=0.5)
    row = of_probs(0.4, 0.3, 0.2, 0.1)
    token = chain.apply(row)
    assert probs_of(chain) == pytest.approx({0: 4 / 7, 1: 3 / 7}, rel=1e-5)
    # mu = 2 - .5 * (-log2 p - 1): .807 bits for 4/7 give 2.096, 1.222 for 3/7 give 1.889.
    surprise = {0: 0.80735, 1: 1.22239}[token]
    mu = 2 - 0.5 * (surprise - 1)
    chain.accept(token)
    chain.apply(row)
    assert len(probs_of(chain)) == sum(-math.log2(p) <= mu for p in (0.4, 0.3, 0.2, 0.1))


def test_mirostat_2_always_keeps_one_and_falls_back_to_its_aim_after_a_reset():
    chain = chain_of([], 4, mirostat=2, mirostat_tau=0.0, mirostat_eta=0.1)
    for _ in range(3):
        chain.accept(chain.apply(of_probs(0.1, 0.2, 0.4, 0.3)))
        assert list(probs_of(chain)) == [2]
    chain.update(mirostat_tau=5.0)
    chain.apply(of_probs(0.1, 0.2, 0.4, 0.3))
    assert len(probs_of(chain)) == 4
    chain.reset()
    chain.apply(of_probs(0.1, 0.2, 0.4, 0.3))
    assert len(probs_of(chain)) == 4


def test_mirostat_1_chooses_k_by_the_formula():
    # p_i ~ 1 / (i + 1): a Zipf law with s = 1.5 at l_i = -1.5 ln(i + 1) exactly.
    n, tau = 1000, 3.0
    row = (-1.5 * np.log(np.arange(1, n + 1))).astype(np.float32)
    chain = chain_of([], n, mirostat=1, mirostat_tau=tau)
    chain.apply(row)
    s, mu = 1.5, 2 * tau
    k = ((s - 1) * 2**mu / (1 - n ** -(s - 1))) ** (1 / s)
    assert len(chain.candidates().ids) == int(k) == 10


# ---------------------------------------------------------------- adaptive-p
def test_adaptive_p_by_hand():
    # target .5, decay .5: ws = .5 / .5 = 1, tw = 1 / .5 = 2; a = 2 * .5 - 1 / 2 = .5.
    chain = chain_of(["adaptive_p"], 3, adaptive_target=0.5, adaptive_decay=0.5)
    probs, ws, tw = (0.6, 0.3, 0.1), 1.0, 2.0
    for _ in range(6):
        token = chain.apply(of_probs(*probs))
        aim = min(max(2 * 0.5 - ws / tw, 0), 1)
        wanted = []
        for p in probs:
            d = abs(p - aim) / 0.3
            wanted.append(5 - 10 * d * d / (1 + d))
        weights = np.exp(wanted)
        found = [probs_of(chain)[i] for i in range(3)]
        assert found == pytest.approx((weights / weights.sum()).tolist(), rel=1e-4)
        chain.accept(token)
        ws, tw = probs[token] + 0.5 * ws, 1 + 0.5 * tw
    assert aim != 0.5  # it moved from where it began


def test_adaptive_p_first_step_in_numbers():
    # a = .5: d = 1/3, 2/3, 4/3; l = 5 - 10 * (1/9)/(4/3) = 4.1667, 5 - 10 * (4/9)/(5/3) = 2.3333,
    # 5 - 10 * (16/9)/(7/3) = -2.6190; softmax = .86119, .13770, .00097.
    chain = chain_of(["adaptive_p"], 4, adaptive_target=0.5, adaptive_decay=0.5)
    chain.apply(of_probs(0.6, 0.3, 0.1, 0.0))
    assert chain.candidates().logits[:3] == pytest.approx([4.16667, 2.33333, -2.61905], abs=1e-4)
    assert list(probs_of(chain).values()) == pytest.approx([0.86133, 0.13770, 0.00097, 0], abs=1e-4)


def test_adaptive_p_without_a_target_is_a_plain_draw():
    chain = chain_of(["adaptive_p"], 3, adaptive_target=-1.0)
    chain.apply(of_probs(0.6, 0.3, 0.1))
    assert list(probs_of(chain).values()) == pytest.approx([0.6, 0.3, 0.1], abs=1e-6)


# ---------------------------------------------------------------- infill
TEXTS = [b"<end>", b"ha", b"hat", b"x", b"y"]


def infill(*probs, **options):
    vocab = NumberedVocab(5, eog_ids=[0], texts=TEXTS)
    chain = chain_of(["infill", "greedy"], 5, vocab, **options)
    chain.apply(of_probs(*probs))
    return {t: round(p, 4) for t, p in probs_of(chain).items()}


def test_infill_ends_where_an_end_is_likely():
    # 3 * p_end * size > p_other: 15 p > 1 - p from p = 1/16 on.
    assert infill(0.07, 0.63, 0.1, 0.1, 0.1) == {0: 1.0}
    assert 1 in infill(0.06, 0.64, 0.1, 0.1, 0.1)


def test_infill_merges_what_begins_alike_and_keeps_what_stands_out():
    # "ha" begins "hat": .3 + .2 = .5; x = .45 stays as well, y = .04 does not reach .2.
    # Two are left beside the end, and both have 1/3 of .96: .5 and .45 and the end's .01, of .96.
    found = infill(0.01, 0.3, 0.2, 0.45, 0.04)
    assert found == pytest.approx({1: 0.5 / 0.96, 3: 0.45 / 0.96, 0: 0.01 / 0.96}, abs=1e-4)
    # The likelier of the two wins; of equals the shorter.
    assert set(infill(0.01, 0.2, 0.3, 0.45, 0.04)) == {0, 2, 3}
    # .25 of three is below 1 / (2 + 1) after the first round: it goes in the second.
    assert set(infill(0.01, 0.5, 0.22, 0.25, 0.02)) == {0, 1}


def test_infill_ends_where_nothing_stands_out():
    flat = NumberedVocab(8, eog_ids=[0], texts=[b"<end>", *(bytes([97 + i]) for i in range(7))])
    chain = chain_of(["infill"], 8, flat)
    assert chain.apply(of_probs(0.001, *[0.999 / 7] * 7)) == 0
    assert chain.candidates().ids.tolist() == [0] and chain.candidates().logits[0] == 1.0


# ---------------------------------------------------------------- order, live changes
def test_stages_act_in_the_order_given_and_as_often_as_given():
    row = of_probs(0.4, 0.3, 0.2, 0.1)
    chain = chain_of(["temperature", "temperature"], 4, temperature=2.0)
    chain.apply(row)
    assert chain.candidates().logits == pytest.approx(row / 4)
    # p^(1/2) flattens: .387 .335 … min-p .6 keeps three of four after it, two before.
    for order, n in ((["temperature", "min_p"], 3), (["min_p", "temperature"], 2)):
        chain = chain_of(order, 4, temperature=2.0, min_p=0.6)
        chain.apply(row)
        assert len(chain.candidates().ids) == n
    # top-k 2 then penalties differs from penalties then top-k 2.
    options = dict(top_k=2, presence_penalty=9.0)
    for order, kept in ((["top_k", "penalties"], {0, 1}), (["penalties", "top_k"], {1, 2})):
        chain = chain_of(order, 4, **options)
        chain.accept(0)
        chain.apply(row)
        assert set(chain.candidates().ids.tolist()) == kept


def test_every_parameter_may_change_in_the_middle_of_an_answer():
    """After any change the chain goes on as one that had these parameters from the beginning."""
    changes = [
        {"temperature": 0.3},
        {"top_k": 3},
        {"repeat_penalty": 1.7, "repeat_last_n": 500},
        {"dry_multiplier": 1.0, "dry_sequence_breakers": ["<7>"]},
        {"samplers": ["min_p", "xtc", "temperature"], "xtc_probability": 0.9},
        {"samplers": ["top_k", "greedy"]},
        {"mirostat": 2, "mirostat_tau": 3.0},
        {"logit_bias": [(4, -5.0)], "ignore_eos": True},
    ]
    rng = np.random.default_rng(0)
    rows = [rng.normal(scale=3, size=50).astype(np.float32) for _ in range(12)]
    for change in changes:
        vocab = NumberedVocab(50, eog_ids=[2])
        changed = SamplerChain(SamplingParams(seed=5), vocab)
        taken = []
        for row in rows[:6]:
            taken.append(changed.apply(row))
            changed.accept(taken[-1])
        changed.update(**change)
        other = SamplerChain(SamplingParams(seed=5, **change), vocab)
        other.accept_all(taken)
        for row in rows[6:]:
            changed.apply(row)
            other.apply(row)
            # The random numbers went on, so only what there is to choose from is the same.
            mine, fresh = changed.candidates(), other.candidates()
            if "xtc" in change.get("samplers", ()) or "mirostat" in change:
                assert len(mine.ids) > 0
                continue
            assert mine.ids.tolist() == fresh.ids.tolist()
            assert mine.logits == pytest.approx(fresh.logits)
            changed.accept(7)
            other.accept(7)


def test_a_changed_seed_starts_the_random_numbers_again():
    row = np.zeros(50, np.float32)
    chain, fresh = chain_of([], 50, seed=1), chain_of([], 50, seed=9)
    for _ in range(5):
        chain.accept(chain.apply(row))
    chain.update(seed=9)
    assert chain.seed == 9
    assert [chain.apply(row) for _ in range(5)] == [fresh.apply(row) for _ in range(5)]


def test_tokens_taken_back_are_forgotten_by_going_back_to_a_clone():
    """Drafts that are refused: the chain before them goes on as if they had never been."""
    row = np.random.default_rng(3).normal(scale=2, size=50).astype(np.float32)
    options = dict(repeat_penalty=1.5, dry_multiplier=1.0, seed=4)
    chain = chain_of(["penalties", "dry", "temperature"], 50, **options)
    chain.accept_all([3, 4, 5, 3, 4])
    kept = chain.clone()
    for token in (5, 3, 4, 5):
        chain.apply(row)
        chain.accept(token)
    fresh = chain_of(["penalties", "dry", "temperature"], 50, **options)
    fresh.accept_all([3, 4, 5, 3, 4])
    for _ in range(5):
        token = fresh.apply(row)
        assert kept.apply(row) == token
        assert kept.candidates().logits.tolist() == fresh.candidates().logits.tolist()
        kept.accept(token)
        fresh.accept(token)
