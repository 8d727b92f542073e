"""Probabilities that events carry: of the raw row before the chain, of what is left after it."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from engine.client.client import EngineClient
from engine.grammar import Constraint, TokenTable
from engine.params import CompletionRequest
from engine.sampling import RowRanker, SamplerChain, rank_after
from engine.server.constrained import ConstrainedSampler
from engine.server.probs import token_probs
from tests.fakes.model import answering, loaded
from tests.fakes.numbered_vocab import NumberedVocab
from tests.make.small_vocab import SmallVocab

PIECES = SmallVocab(["é".encode()[:1], b"<end of turn>"])
VOCAB = NumberedVocab(PIECES.n_tokens, PIECES.eog_ids, PIECES.pieces)
N = VOCAB.n_tokens
ROW = np.random.default_rng(3).normal(scale=3, size=N).astype(np.float32)
EXACT = np.exp(ROW.astype(np.float64)) / np.exp(ROW.astype(np.float64)).sum()
RANKED = np.argsort(-ROW).tolist()
LOADED = SimpleNamespace(vocab=VOCAB, rank_row=RowRanker(N).rank, rank_after=rank_after)
LOWEST = -3.4028234663852886e38


def probs_of(token=None, regex=None, row=ROW, **options):
    """Return what the event says of the token that is chosen, or of another one."""
    request = CompletionRequest("x", **{"n_probs": 4, "seed": 1, **options})
    matcher = Constraint.from_regex(regex).begin(TokenTable.of(PIECES)) if regex else None
    sampler = ConstrainedSampler(SamplerChain(request.params, VOCAB), matcher)
    sampler.accept_all(RANKED[:3])
    chosen = sampler.apply(row)
    slot = SimpleNamespace(request=request, sampler=sampler)
    return token_probs(slot, chosen if token is None else token, row, LOADED)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.1, "top_k": 1},
        {"presence_penalty": 50.0, "repeat_penalty": 9.0},
        {"logit_bias": [(RANKED[0], False)]},
        {"regex": "[0-9]"},
        {"mirostat": 2},
    ],
)
def test_before_the_chain_nothing_of_it_shows(options):
    (told,) = probs_of(**options)
    assert [rival.token for rival in told.top] == RANKED[:4]
    shown = [math.exp(rival.logprob) for rival in told.top]
    assert shown == pytest.approx(EXACT[RANKED[:4]].tolist(), rel=1e-5)
    assert math.exp(told.logprob) == pytest.approx(EXACT[told.token], rel=1e-5)


def test_a_token_beyond_the_list_has_its_own_number():
    (told,) = probs_of(token=RANKED[200])
    assert RANKED[200] not in [rival.token for rival in told.top]
    assert math.exp(told.logprob) == pytest.approx(EXACT[RANKED[200]], rel=1e-5)


def test_after_the_chain_only_what_it_left_is_told():
    options = dict(post_sampling_probs=True, top_k=3, temperature=1.0, min_p=0.0, top_p=1.0)
    (told,) = probs_of(**options, n_probs=20)
    left = EXACT[RANKED[:3]] / EXACT[RANKED[:3]].sum()
    assert [rival.token for rival in told.top] == RANKED[:3]
    assert [math.exp(rival.logprob) for rival in told.top] == pytest.approx(left.tolist(), rel=1e-4)
    assert told.logprob == next(r.logprob for r in told.top if r.token == told.token)


def test_after_the_chain_the_list_ends_where_nothing_is_left():
    (told,) = probs_of(post_sampling_probs=True, temperature=0.0, samplers=["temperature"])
    assert [(rival.token, rival.logprob) for rival in told.top] == [(RANKED[0], 0.0)]
    (told,) = probs_of(token=RANKED[9], post_sampling_probs=True, temperature=0.0)
    assert told.logprob == LOWEST  # p = 0


def test_after_the_chain_the_grammar_counts():
    (told,) = probs_of(regex="[0-9]", post_sampling_probs=True, n_probs=20)
    assert {rival.token for rival in told.top} <= set(b"0123456789")


def test_a_probability_of_nothing_is_the_lowest_number():
    row = ROW.copy()
    row[RANKED[5]] = -np.inf
    (told,) = probs_of(token=RANKED[5], row=row)
    assert told.logprob == LOWEST


def test_all_bytes_of_a_token_are_told_also_of_half_a_character():
    row = ROW.copy()
    half = PIECES.id_of("é".encode()[:1])
    row[[half, PIECES.id_of(b"<end of turn>")]] = 90, 89
    (told,) = probs_of(row=row, temperature=0.0)
    assert told.token == half
    assert [rival.piece for rival in told.top[:2]] == [b"\xc3", b"<end of turn>"]


@pytest.mark.parametrize(("stop", "n_told"), [("END", 6), ("never", 14), ("h", 0)])
def test_a_stop_word_is_no_part_of_what_is_told_at_the_end(stop, n_told):
    model = loaded(answering(b"hello END more"), n_batch=8)
    with EngineClient.over(lambda progress: model, 1) as client:
        options = dict(temperature=0, n_probs=1, stop=[stop], n_predict=14)
        events = list(client.submit(CompletionRequest("hi>", **options)))
    assert [chr(told.token) for told in events[-1].probs] == list("hello END more")[:n_told]
    streamed = [told for event in events[:-1] for told in getattr(event, "probs", ())]
    assert len(streamed) == len(events[-1].tokens)


def test_nothing_is_told_unasked_and_no_more_than_there_is():
    assert probs_of(n_probs=0) == ()
    (told,) = probs_of(n_probs=10**6)
    assert len(told.top) == N
    assert sum(math.exp(rival.logprob) for rival in told.top) == pytest.approx(1, rel=1e-4)
