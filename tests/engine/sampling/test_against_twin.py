"""Samplers and whole chains against their naive twins, on rows of every size and shape."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from engine.params import SamplingParams
from engine.sampling import SamplerChain
from tests.fakes.numbered_vocab import NumberedVocab
from tests.reference import sampling as twin

SIZES = [1, 2, 17, 1000, 9000, 50000]
OFF = dict(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)
SHAPES = ("normal", "peaked", "flat", "banned", "ascending", "ties")


def row(shape, n, seed=0):
    rng = np.random.default_rng([n, seed, SHAPES.index(shape)])
    logits = rng.normal(scale={"peaked": 6.0, "flat": 0.01}.get(shape, 2.0), size=n)
    if shape == "banned":
        logits[rng.random(n) < 0.95] = -np.inf
        logits[rng.integers(n)] = 1.0
    elif shape == "ascending":
        logits.sort()
    elif shape == "ties":
        logits = np.round(logits)
    return logits.astype(np.float32)


def apply_twin(name, c, params, state):
    """Run the twin of one sampler as the chain would."""
    if name == "penalties":
        rates = params.repeat_penalty, params.frequency_penalty, params.presence_penalty
        twin.penalties(c, state["history"], params.repeat_last_n, *rates)
    elif name == "dry":
        rates = params.dry_multiplier, params.dry_base, params.dry_allowed_length
        twin.dry(c, state["history"], *rates, params.dry_penalty_last_n, {})
    elif name == "top_n_sigma":
        twin.top_n_sigma(c, params.top_n_sigma)
    elif name == "top_k":
        twin.top_k(c, params.top_k)
    elif name == "typ_p":
        twin.typical(c, params.typical_p, params.min_keep)
    elif name == "top_p":
        twin.top_p(c, params.top_p, params.min_keep)
    elif name == "min_p":
        twin.min_p(c, params.min_p, params.min_keep)
    elif name == "xtc":
        limits = params.xtc_probability, params.xtc_threshold
        twin.xtc(c, *limits, params.min_keep, state["xtc"])
    elif name == "temperature":
        curve = params.dynatemp_range, params.dynatemp_exponent
        twin.dynamic_temperature(c, params.temperature, *curve)


def expect(params, logits, history=(), seed=7):
    c = twin.Candidates.of(logits)
    state = dict(history=history, xtc=twin.Generator(seed))
    for name in params.samplers:
        apply_twin(name, c, params, state)
    twin.dist(c, twin.Generator(seed))
    return c


def check(params, logits, history=(), ordered=True):
    """Chain and twin leave the same candidates with the same p and choose the same.

    Which of equal logits comes first, or is still in, is not defined.
    """
    chain = SamplerChain(params, NumberedVocab(len(logits)))
    chain.accept_all(history)
    token = chain.apply(logits)
    found, expected = chain.candidates(), expect(params, logits, history)
    assert len(found.ids) == len(set(found.ids.tolist()))
    assert len(found.ids) == pytest.approx(len(expected.ids), rel=1e-3)
    if len(found.ids) != len(expected.ids):
        return  # a limit was reached a rounding earlier
    if ordered:
        assert_allclose(found.logits, expected.logits, rtol=1e-5, atol=1e-5)
    assert_allclose(np.sort(found.probs), np.sort(expected.p), rtol=1e-4, atol=1e-7)
    in_doubt = expected.logits[-1] if expected.is_sorted else np.nan
    sure = set(expected.ids[expected.logits != in_doubt].tolist())
    assert sure <= set(found.ids.tolist())
    if ordered:
        chosen = logits[expected.ids[expected.selected]]
        assert logits[token] == pytest.approx(chosen, rel=1e-5)


def params(*samplers, **changes):
    return SamplingParams(seed=7, samplers=samplers, **{**OFF, **changes})


SINGLE = [
    params(),
    params("top_k", top_k=40),
    params("top_k", top_k=700),
    params("top_k", top_k=5000),
    params("top_p", top_p=0.9),
    params("top_p", top_p=0.9, min_keep=300),
    params("top_p", top_p=0.4, min_keep=7000),
    params("top_p", top_p=0.999),
    params("min_p", min_p=0.1),
    params("min_p", min_p=0.99, min_keep=20),
    params("top_n_sigma", top_n_sigma=1.5),
    params("temperature", temperature=0.7),
    params("temperature", temperature=0.0),
    params("temperature", temperature=1.5, dynatemp_range=1.0, dynatemp_exponent=1.3),
    params("xtc", xtc_probability=1.0, xtc_threshold=0.02),
    params("xtc", xtc_probability=1.0, xtc_threshold=0.0, min_keep=2),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("settings", SINGLE, ids=lambda p: "".join(p.samplers) or "none")
def test_one_sampler(settings, n, shape):
    check(settings, row(shape, n))


@pytest.mark.parametrize("seed", range(12))
def test_a_sum_that_many_candidates_reach_is_found_as_by_sorting_them(seed):
    """Behind the first few thousand a bound is looked for, and only what is near it is sorted."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(9000, 60000))
    logits = rng.normal(scale=rng.choice([1e-4, 0.1, 1.0, 2.0]), size=n).astype(np.float32)
    if seed % 3 == 0:
        logits = np.round(logits, 1)
        logits[0] = -0.0
    if seed % 4 == 1:
        logits[rng.random(n) < 0.3] = -np.inf
    for top_p in rng.uniform(0.2, 1, size=4):
        settings = params("temperature", "top_p", "min_p", top_p=top_p, temperature=1.3, min_p=1e-9)
        check(settings, logits)


@pytest.mark.parametrize("zeros", [[0.0], [-0.0], [0.0, -0.0]])
def test_equal_candidates_are_kept_by_their_number(zeros):
    chain = SamplerChain(params("top_p", top_p=0.5), NumberedVocab(40_000))
    chain.apply(np.resize(np.array(zeros, np.float32), 40_000))
    assert len(chain.candidates().ids) == pytest.approx(20_000, abs=1)
    assert chain.candidates().probs.sum() == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("shape", ["normal", "peaked", "banned"])
def test_typical(n, shape):
    check(params("typ_p", typical_p=0.6, min_keep=3), row(shape, n), ordered=n <= 1000)


HISTORY = [1, 2, 3, 1, 2, 9, 4, 1, 2, 3, 1, 2] * 6
EVERYTHING = dict(
    repeat_penalty=1.2,
    presence_penalty=0.3,
    frequency_penalty=0.1,
    dry_multiplier=0.8,
    top_n_sigma=3.0,
    top_k=300,
    typical_p=0.99,
    top_p=0.95,
    min_p=0.01,
    xtc_probability=0.5,
    xtc_threshold=0.1,
    temperature=0.8,
    dynatemp_range=0.3,
)
NAMES = list(SamplingParams().samplers)


@pytest.mark.parametrize("seed", range(40))
def test_any_order(seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(NAMES)[: rng.integers(1, len(NAMES) + 1)].tolist()
    n = int(rng.choice([50, 3000, 20000]))
    settings = SamplingParams(seed=7, samplers=order, **EVERYTHING)
    check(settings, row("normal", n, seed), HISTORY)


@pytest.mark.parametrize("order", [["penalties"], ["top_k", "penalties"], ["xtc", "penalties"]])
def test_penalties_reach_exactly_the_last_n(order):
    history = list(range(10, 40))
    settings = params(
        *order,
        repeat_penalty=3.0,
        repeat_last_n=7,
        top_k=200,
        xtc_probability=1,
        xtc_threshold=0.01,
    )
    check(settings, row("normal", 300), history)


@pytest.mark.parametrize("seed", range(30))
def test_dry_on_random_histories(seed):
    rng = np.random.default_rng(seed)
    history = rng.integers(0, 4, size=rng.integers(0, 60)).tolist()
    settings = params(
        "dry",
        dry_multiplier=1.1,
        dry_base=1.3,
        dry_allowed_length=int(rng.integers(1, 4)),
        dry_penalty_last_n=int(rng.integers(1, 80)),
    )
    check(settings, row("normal", 12), history)


@pytest.mark.parametrize("seed", range(20))
def test_dry_with_breakers(seed):
    rng = np.random.default_rng(seed)
    history = rng.integers(0, 5, size=40).tolist()
    vocab = NumberedVocab(8, texts=[b"a", b"b", b"ab", b"c\n", b"b:", b"d", b"\n:", b":"])
    wanted = ("c", "\n:", ":", "ab:")
    settings = SamplingParams(
        seed=7,
        samplers=["dry"],
        dry_multiplier=1.0,
        dry_penalty_last_n=64,
        dry_sequence_breakers=wanted,
    )
    chain = SamplerChain(settings, vocab)
    chain.accept_all(history)
    logits = row("normal", 8, seed)
    chain.apply(logits)
    c = twin.Candidates.of(logits)
    twin.dry(c, history, 1.0, 1.75, 2, 64, found_breakers(vocab, wanted))
    assert chain.candidates().logits == pytest.approx(c.logits, abs=1e-5)


def found_breakers(vocab, wanted):
    """The definition, character by character."""
    tails = {}
    for token in range(vocab.n_tokens):
        text = vocab.piece(token)
        for breaker in (b.encode() for b in wanted):
            if breaker in text:
                tails.setdefault(token, set()).add(())
                continue
            for at in range(len(text)):
                rest = text[at:]
                if breaker.startswith(rest):
                    tail = vocab.tokenize(breaker[len(rest) :].decode())
                    tails.setdefault(token, set()).add(tuple(tail))
    return {token: sorted(found) for token, found in tails.items()}


@pytest.mark.parametrize("mirostat", [1, 2])
@pytest.mark.parametrize("n", [2, 50, 20000])
def test_mirostat_over_many_tokens(mirostat, n):
    settings = SamplingParams(seed=3, mirostat=mirostat, mirostat_tau=4.0, temperature=0.9)
    chain, generator = SamplerChain(settings, NumberedVocab(n)), twin.Generator(3)
    state = twin.Mirostat(4.0, settings.mirostat_eta)
    for i in range(12):
        logits = row("normal", n, i)
        c = twin.Candidates.of(logits)
        twin.temperature(c, 0.9)
        state.v1(c, n, generator) if mirostat == 1 else state.v2(c, generator)
        assert chain.apply(logits) == c.ids[c.selected]
        assert len(chain.candidates().ids) == len(c)
        chain.accept(int(c.ids[c.selected]))


@pytest.mark.parametrize("target", [-1.0, 0.0, 0.3, 0.9])
def test_adaptive_p_over_many_tokens(target):
    settings = SamplingParams(
        seed=3, samplers=["adaptive_p", "min_p"], min_p=0.02, adaptive_target=target
    )
    chain, generator = SamplerChain(settings, NumberedVocab(400)), twin.Generator(3)
    state = twin.Adaptive(target, 0.9)
    for i in range(20):
        logits = row("peaked", 400, i)
        c = twin.Candidates.of(logits)
        twin.min_p(c, 0.02, 0)
        state.apply(c, generator)
        token = chain.apply(logits)
        assert token == c.ids[c.selected]
        assert chain.candidates().probs == pytest.approx(c.p, rel=1e-4, abs=1e-6)
        taken = token if i % 3 else 399  # a token that another took instead is not learnt from
        chain.accept(taken)
        state.accept(taken)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("ignore_eos", [False, True])
def test_infill(seed, ignore_eos):
    rng = np.random.default_rng(seed)
    texts = ["".join(rng.choice(["a", "b"], size=rng.integers(0, 4))).encode() for _ in range(40)]
    vocab = NumberedVocab(40, eog_ids=[5, 6], texts=texts)
    logits = row("peaked" if seed % 3 else "flat", 40, seed)
    if seed % 2:
        logits[[5, 6]] = -20.0
    params = SamplingParams(seed=1, samplers=["infill", "greedy"], ignore_eos=ignore_eos)
    chain = SamplerChain(params, vocab)
    chain.apply(logits)
    if ignore_eos:
        logits[[5, 6]] = -np.inf
    c = twin.Candidates.of(logits)
    shown = [vocab.piece(token, special=False) for token in range(40)]
    twin.infill(c, shown, {5, 6}, None if ignore_eos else 5)
    found = chain.candidates()
    assert found.ids.tolist() == c.ids.tolist()
    assert found.probs == pytest.approx(c.p, abs=1e-5)


def test_the_order_of_two_samplers_matters():
    logits = row("normal", 500)
    first = SamplingParams(seed=1, samplers=["temperature", "min_p"], temperature=3.0, min_p=0.2)
    second = first.replace(samplers=["min_p", "temperature"])
    sizes = []
    for settings in (first, second):
        chain = SamplerChain(settings, NumberedVocab(500))
        chain.apply(logits)
        sizes.append(len(chain.candidates().ids))
    assert sizes[0] > 2 * sizes[1]
    assert math.isfinite(sum(sizes))
