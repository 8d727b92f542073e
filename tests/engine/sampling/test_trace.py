"""The trace of a chain: every stage as its twin would leave it, and nothing at all when off."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from engine.native.objects import Kernels
from engine.params import SamplingParams
from engine.sampling import SamplerChain
from tests.fakes.numbered_vocab import NumberedVocab
from tests.reference import sampling as twin


def make_chain(n, n_top=0, **options):
    chain = SamplerChain(SamplingParams(seed=3, **options), NumberedVocab(n))
    chain.trace(n_top)
    return chain


def a_row(n, seed=0):
    return np.random.default_rng(seed).normal(scale=3, size=n).astype(np.float32)


@pytest.fixture
def calls(monkeypatch):
    """Count the kernels that are called, by name."""
    seen = []
    plain = Kernels.call

    def call(self, name, *args, **options):
        seen.append(name)
        return plain(self, name, *args, **options)

    monkeypatch.setattr(Kernels, "call", call)
    return seen


def test_without_a_trace_one_kernel_is_called_for_each_token(calls):
    chain = make_chain(500)
    calls.clear()
    for seed in range(5):
        chain.accept(chain.apply(a_row(500, seed)))
    assert calls == ["sampling/apply"] * 5 and chain.stages == ()
    chain.trace(4)
    calls.clear()
    chain.apply(a_row(500))
    assert calls.count("sampling/apply") == 1 + len(chain.stages) > 2
    chain.trace(0)
    calls.clear()
    chain.apply(a_row(500))
    assert calls == ["sampling/apply"] and chain.stages == ()


@pytest.mark.parametrize("n", [17, 1000, 20000])
def test_every_stage_is_what_the_twin_leaves(n):
    chain = make_chain(n, 12, top_k=9, top_p=0.8, min_p=0.1, repeat_penalty=1.3, temperature=0.6)
    row = a_row(n)
    history = np.argsort(-row)[:3].tolist()
    chain.accept_all(history)
    chosen = chain.apply(row)
    c = twin.Candidates.of(row)
    done = {"logits": lambda: None}
    done["penalties"] = lambda: twin.penalties(c, history, 64, 1.3, 0.0, 0.0)
    done["top-k"] = lambda: twin.top_k(c, 9)
    done["top-p"] = lambda: twin.top_p(c, np.float32(0.8), 0)
    done["min-p"] = lambda: twin.min_p(c, np.float32(0.1), 0)
    done["temp-ext"] = lambda: twin.dynamic_temperature(c, 0.6, 0.0, 1.0)
    done["dist"] = lambda: None
    assert [stage.name for stage in chain.stages] == list(done)
    for stage in chain.stages:
        done[stage.name]()
        c.softmax(sort=False)
        expected = dict(zip(c.ids.tolist(), c.p.tolist(), strict=True))
        assert stage.n_left == sum(p > 0 for p in expected.values()), stage.name
        known = [expected.get(token, 0.0) for token in stage.probs]
        assert_allclose(list(stage.probs.values()), known, rtol=2e-5, atol=1e-9)
    assert set(np.argsort(-row)[:12].tolist()) | {chosen} == set(chain.stages[0].probs)
    assert chain.stages[-1].probs[chosen] > 0


@pytest.mark.parametrize(
    "options",
    [
        {"xtc_probability": 0.5, "xtc_threshold": 0.05},
        {"mirostat": 1},
        {"mirostat": 2},
        {"samplers": ("min_p", "adaptive_p"), "adaptive_target": 0.4},
        {"samplers": ("top_k", "greedy")},
    ],
)
def test_a_traced_chain_chooses_what_an_untraced_one_chooses(options):
    plain, traced = make_chain(300, **options), make_chain(300, 5, **options)
    for seed in range(40):
        row = a_row(300, seed)
        token = plain.apply(row)
        assert traced.apply(row) == token
        assert traced.stages[-1].probs[token] > 0
        plain.accept(token)
        traced.accept(token)


def test_changes_on_the_way_are_traced_and_a_clone_is_not():
    chain = make_chain(100, 3)
    chain.apply(a_row(100))
    chain.update(samplers=("temperature", "top_k"), top_k=2, repeat_last_n=20000)
    chain.apply(a_row(100))
    assert [stage.name for stage in chain.stages] == ["logits", "temp-ext", "top-k", "dist"]
    assert [stage.n_left for stage in chain.stages] == [100, 100, 2, 2]
    clone = chain.clone()
    clone.apply(a_row(100, 9))
    assert clone.stages is chain.stages
