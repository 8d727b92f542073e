"""Every published vector of every sampler, through the compiled chain."""

import math

import numpy as np
import pytest

from engine.params import SamplingParams
from engine.sampling import SamplerChain
from tests.fakes.numbered_vocab import NumberedVocab

P4 = (0.1, 0.2, 0.3, 0.4)
GREEDY = "greedy"  # leaves p as the sampler under test made it


def logits_of(probs):
    with np.errstate(divide="ignore"):
        return np.log(np.array(probs, np.float32))


def run(probs, samplers, history=(), breakers="\x00", **params):
    """Return the candidates that a chain leaves."""
    vocab = NumberedVocab(len(probs))
    settings = SamplingParams(
        seed=0, samplers=samplers, min_keep=0, dry_sequence_breakers=[breakers], **params
    )
    chain = SamplerChain(settings, vocab)
    chain.accept_all(history)
    chain.apply(logits_of(probs))
    return chain.candidates()


TRUNCATION = [
    ("temperature", P4, dict(temperature=1.0), [0.1, 0.2, 0.3, 0.4]),
    ("temperature", P4, dict(temperature=0.0), [0, 0, 0, 1]),
    ("temperature", P4, dict(temperature=1.0, dynatemp_range=0.0), [0.1, 0.2, 0.3, 0.4]),
    ("top_k", P4, dict(top_k=1), [1.0]),
    ("top_k", P4, dict(top_k=3), [0.44444, 0.33333, 0.22222]),
    ("top_k", P4, dict(top_k=4), [0.4, 0.3, 0.2, 0.1]),
    ("top_k", P4, dict(top_k=0), [0.1, 0.2, 0.3, 0.4]),
    ("top_p", P4, dict(top_p=0.0), [1.0]),
    ("top_p", P4, dict(top_p=0.7), [0.571429, 0.428571]),
    ("top_p", P4, dict(top_p=0.8), [0.44444, 0.33333, 0.22222]),
    ("top_p", P4, dict(top_p=1.0), [0.1, 0.2, 0.3, 0.4]),
    ("min_p", P4, dict(min_p=0.0), [0.1, 0.2, 0.3, 0.4]),
    ("min_p", P4, dict(min_p=0.24), [0.1, 0.2, 0.3, 0.4]),
    ("min_p", P4, dict(min_p=0.26), [0.2 / 0.9, 0.3 / 0.9, 0.4 / 0.9]),
    ("min_p", P4, dict(min_p=0.49), [0.2 / 0.9, 0.3 / 0.9, 0.4 / 0.9]),
    ("min_p", P4, dict(min_p=0.51), [0.3 / 0.7, 0.4 / 0.7]),
    ("min_p", P4, dict(min_p=0.74), [0.3 / 0.7, 0.4 / 0.7]),
    ("min_p", P4, dict(min_p=0.76), [1.0]),
    ("min_p", P4, dict(min_p=1.00), [1.0]),
    ("min_p", P4, dict(min_p=1.05), [1.0]),
    ("top_n_sigma", P4, dict(top_n_sigma=1.0), [0, 0, 0.428571, 0.571429]),
    ("top_n_sigma", P4, dict(top_n_sigma=0.0), [0.1, 0.2, 0.3, 0.4]),
    ("top_n_sigma", P4, dict(top_n_sigma=3.0), [0.1, 0.2, 0.3, 0.4]),
]


@pytest.mark.parametrize(("name", "probs", "params", "expected"), TRUNCATION)
def test_with_dist(name, probs, params, expected):
    assert run(probs, [name], **params).probs == pytest.approx(expected, abs=1e-5)


XTC = [(0.09, [0.1]), (0.19, [0.2, 0.1]), (0.29, [0.3, 0.2, 0.1]), (0.39, [0.4, 0.3, 0.2, 0.1])]


@pytest.mark.parametrize(("threshold", "expected"), XTC)
def test_xtc(threshold, expected):
    left = run((0.4, 0.3, 0.2, 0.1), ["xtc", GREEDY], xtc_probability=0.99, xtc_threshold=threshold)
    assert left.probs == pytest.approx(expected, abs=1e-5)


TYPICAL = [((0.97, 0.01, 0.01, 0.01), [0.97]), ((0.4, 0.2, 0.2, 0.2), [0.2, 0.2, 0.2])]


@pytest.mark.parametrize(("probs", "expected"), TYPICAL)
def test_typical(probs, expected):
    left = run(probs, ["typ_p", GREEDY], typical_p=0.5)
    assert left.probs == pytest.approx(expected, abs=1e-5)


PENALTIES = [
    ([0], 50, 0, 0, [0, 0.25, 0.25, 0.25, 0.25]),
    ([0, 1, 2], 50, 0, 0, [0, 0, 0, 0.5, 0.5]),
    ([0, 1, 2, 0, 0], 50, 0, 0, [0, 0, 0, 0.5, 0.5]),
    ([0], 1, 5, 5, [0.000011, 0.249997, 0.249997, 0.249997, 0.249997]),
    ([0, 1, 2], 1, 5, 5, [0.000023, 0.000023, 0.000023, 0.499966, 0.499966]),
    ([0, 1, 2, 0, 0], 1, 5, 5, [0.000000, 0.000023, 0.000023, 0.499977, 0.499977]),
]


@pytest.mark.parametrize(("history", "repeat", "frequency", "presence", "expected"), PENALTIES)
def test_penalties(history, repeat, frequency, presence, expected):
    left = run(
        [0.2] * 5,
        ["penalties"],
        history,
        repeat_last_n=len(history),
        repeat_penalty=repeat,
        frequency_penalty=frequency,
        presence_penalty=presence,
    )
    assert left.probs == pytest.approx(expected, abs=1e-5)


DRY = [
    (4, [0, 1], (1.0, 1.1, 2, 4), "", [0.25] * 4),
    (4, [0, 1, 2, 0, 1], (1.0, 1.1, 2, 5), "", [0.296923, 0.296923, 0.109232, 0.296923]),
    (5, [0, 1, 3, 4, 0, 1], (1.0, 1.1, 2, 6), "<3>", [0.2] * 5),
    (5, [0, 1, 2, 0, 1], (2.0, 1.1, 2, 5), "", [0.241818, 0.241818, 0.032727, 0.241818, 0.241818]),
    (5, [0, 1, 2, 3, 4, 0, 1], (1.0, 1.1, 4, 7), "", [0.2] * 5),
]


@pytest.mark.parametrize(("n", "history", "params", "breaker", "expected"), DRY)
def test_dry(n, history, params, breaker, expected):
    multiplier, base, allowed, last_n = params
    left = run(
        [1 / n] * n,
        ["dry"],
        history,
        breaker or "\x00",
        dry_multiplier=multiplier,
        dry_base=base,
        dry_allowed_length=allowed,
        dry_penalty_last_n=last_n,
    )
    assert left.probs == pytest.approx(expected, abs=1e-5)


N_QUEUE = 10000
QUEUE = [
    ("k", 10000, 1, 1),
    ("k", 1, 1, 1),
    ("p", 10000, 1, 1),
    ("p", 10000, 0, 1),
    ("m", 10000, 1, 1),
    ("m", 10000, 1, 1e-12),
    ("k", 100, 1, 1),
    ("p", 10000, 0.0003, 1),
    ("p", 10000, 0.8, 1),
    ("m", 10000, 1, 9997.9 / 9999),
    ("m", 10000, 1, 0.1),
    *((order, 100, 0.8, 0.1) for order in ("kp", "km", "pk", "pm", "mk")),
    ("mp", 100, 0.8, 9997.9 / 9999),
    ("mp", 100, 0.8, 0.1),
    *((order, 100, 0.8, 0.1) for order in ("kpm", "kmp", "pkm", "pmk", "mkp", "mpk")),
]


def lowest_of_top_p(low, top_p):
    """Return (smallest surviving id, how many survive) of top-p over ids low … n."""
    n = N_QUEUE
    mass = n * (n - 1) // 2 - low * (low - 1) // 2
    target = math.ceil(float(np.float32(top_p)) * mass)
    low, count, total = n, 0, 0
    while count == 0 or total < target:
        low -= 1
        count += 1
        total += low
    return (0, count + 1) if low == 1 else (low, count)


def left_of_queue(order, top_k, top_p, min_p):
    with np.errstate(divide="ignore"):
        logits = np.log(np.arange(N_QUEUE, dtype=np.float32))
    params = SamplingParams(seed=0, samplers=order, top_k=top_k, top_p=top_p, min_p=min_p)
    chain = SamplerChain(params.replace(min_keep=1), NumberedVocab(N_QUEUE))
    chain.apply(logits)
    return chain.candidates().ids


@pytest.mark.parametrize(("order", "top_k", "top_p", "min_p"), QUEUE)
def test_queue(order, top_k, top_p, min_p):
    n, low = N_QUEUE, 0
    for i, letter in enumerate(order):
        ids = left_of_queue(order[: i + 1], top_k, top_p, min_p)
        if letter == "k":
            assert len(ids) <= top_k
            low = max(low, n - top_k)
        elif letter == "p" and top_p < 1:
            low, count = lowest_of_top_p(low, top_p)
            assert len(ids) == count
        elif letter == "m":
            assert len(ids) <= max(1, math.ceil((1 - min_p) * n))
            low = min(n - 1, max(math.floor(min_p * n), 1, n - len(ids)))
        if letter in "kp" and not (letter == "p" and top_p == 1):
            assert (ids[0], ids[-1]) == (n - 1, low)
        assert ids.min() == low


def test_draws_stay_aligned_whatever_was_drawn_before():
    def draws(top_k):
        chain = SamplerChain(
            SamplingParams(seed=4242, samplers=["top_k"], top_k=top_k), NumberedVocab(256)
        )
        equal = np.zeros(256, np.float32)
        chain.apply(equal)
        chain.update(top_k=0)
        return [chain.apply(equal) for _ in range(4)]

    assert draws(1) == draws(2)


@pytest.mark.parametrize("params", [dict(temperature=0.0), dict(top_k=1)])
def test_greedy_is_the_largest(params):
    logits = np.random.default_rng(5).normal(size=1000).astype(np.float32)
    chain = SamplerChain(SamplingParams(**params), NumberedVocab(1000))
    assert [chain.apply(logits) for _ in range(5)] == [int(logits.argmax())] * 5
