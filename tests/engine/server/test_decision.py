"""Decisions against likelihoods worked out one token at a time; what they read and leave behind."""

import math
import threading

import numpy as np
import pytest

import engine
from engine.client.client import EngineClient
from engine.errors import ContextFullError, InternalError
from engine.server.decision import Decision, Options
from tests.fakes.gate import Gate
from tests.fakes.model import BOS, EOS, answering, chaotic, loaded, one_hot
from tests.fakes.paged import PagedContext

PROMPT = [BOS, *b"is it so? "]


def client_of(logits_of, n_slots=1, **options):
    model = loaded(logits_of, **options)
    return EngineClient.over(lambda progress: model, n_slots), model.context


def likelihood(prompt, text):
    """ln p of a text behind a prompt, one token at a time."""
    total, said = 0.0, list(prompt)
    for token in text.encode():
        row = chaotic()(said).astype(np.float64)
        total += row[token] - np.log(np.exp(row).sum())
        said.append(token)
    return total


def test_options_of_any_length_are_weighed_from_one_batch():
    client, context = client_of(chaotic())
    options = ["yes", "no", "perhaps", "not now"]
    with client:
        decision = client.decide(PROMPT, options)
        expected = np.exp([likelihood(PROMPT, text) for text in options])
        # “no” begins “not now”: the likelihood of that one is not its own.
        expected[1] -= np.exp(likelihood(PROMPT, "not now"))
        assert decision.options == tuple(options)
        assert decision.probabilities == pytest.approx(expected / expected.sum(), rel=1e-4)
        assert decision.best == options[int(expected.argmax())]
        n_tokens = [len(tokens) for tokens, *_ in context.decodes]
        assert n_tokens == [len(PROMPT), 6 + 6, 2]  # there are two forks
        assert (decision.timings.n_read, decision.timings.n_cached) == (len(PROMPT), 0)
        again = client.decide(PROMPT, ["a", "b"])
        assert (again.timings.n_read, again.timings.n_cached) == (0, len(PROMPT))
        assert client.slots()[0].n_tokens == len(PROMPT)
    assert context.memory.tokens(100) == context.memory.tokens(101) == []


def test_a_scale_gives_a_score_and_ten_is_not_one():
    client, _ = client_of(chaotic())
    with client:
        decision = client.decide(PROMPT, range(1, 11))
    likelihoods = {str(i): math.exp(likelihood(PROMPT, str(i))) for i in range(1, 11)}
    likelihoods["1"] -= likelihoods["10"]
    whole = sum(likelihoods.values())
    expected = sum(int(text) * p / whole for text, p in likelihoods.items())
    assert decision.score == pytest.approx(expected, rel=1e-4)
    assert sum(decision.probabilities) == pytest.approx(1)


def test_a_score_is_of_numbers_only():
    with pytest.raises(engine.RequestError, match="numbers"):
        _ = Decision(("a", "b"), (0.5, 0.5), (-1.0, -1.0)).score


@pytest.mark.parametrize("options", [[], ["a"], ["a", ""], ["a", "a"], [1, "1"]])
def test_what_is_no_choice_is_refused(options):
    client, _ = client_of(chaotic())
    with client, pytest.raises(engine.RequestError, match="two options"):
        client.decide(PROMPT, options)


def test_a_choice_needs_a_prompt_that_fits():
    client, _ = client_of(chaotic(), n_ctx=32)
    with client:
        with pytest.raises(engine.RequestError, match="needs a prompt"):
            client.decide([], ["a", "b"])
        with pytest.raises(engine.ContextFullError):
            client.decide(PROMPT, ["a", "b" * 40])
        assert client.decide(PROMPT, ["a", "b"]).best


def test_branches_share_what_they_begin_with():
    options = Options.read(["ab", "abc", "abd", "b", "bcde", "xy"], str.encode)
    assert sorted(bytes(branch) for branch in options.branches) == [b"ab", b"bcd", b"x"]
    assert Options.read(["a", "b"], str.encode).branches == []


def test_impossible_options_are_shared_out_evenly():
    options = Options.read(["ab", "cd"], str.encode)
    decision = options.decide(lambda before, token: -math.inf, engine.Timings())
    assert decision.probabilities == (0.5, 0.5)


def test_running_answers_go_on_beside_a_decision():
    client, context = client_of(answering(b"x" * 30), n_slots=2)
    gate = Gate(context)
    with client:
        running = client.submit(engine.CompletionRequest("a>", temperature=0))
        gate.step(3)
        found = []
        asking = threading.Thread(target=lambda: found.append(client.decide("b>", ["xx", "y"])))
        asking.start()
        gate.open()
        asking.join(10)
        assert found[0].best == "xx"
        assert found[0].probabilities[0] > 0.99
        assert running.result().text == "x" * 30


@pytest.mark.parametrize("window", [0, 32])
def test_real_pages_are_shared_by_the_branches_and_left_as_they_were(window):
    context = PagedContext(chaotic(), 512, 4, window=window)
    client, _ = client_of(None, context=context, forks=(2, 3), n_ctx=512)
    prompt = [BOS, *range(100)]
    options = ["abc", "bcd", "cdefg", "d", "abd"]
    with client:
        decision = client.decide(prompt, options)
        expected = np.exp([likelihood(prompt, text) for text in options])
        assert decision.probabilities == pytest.approx(expected / expected.sum(), rel=1e-3)
        context.memory.check_integrity()
        assert context.memory.tokens(0) == prompt
        assert context.memory.stats()["n_cells"] == len(prompt)


def test_a_decision_makes_room_and_says_so_where_there_is_none():
    client, context = client_of(chaotic(), n_slots=2, n_cells=40)
    with client:
        client.submit(engine.CompletionRequest([BOS, *range(25)], n_predict=1)).result()
        assert client.decide([BOS, *b"another"], ["abcd", "bcde"]).best
        with pytest.raises(ContextFullError):
            client.decide([BOS, *b"another"], ["abcd" * 5, "bcde" * 5])
        assert client.decide([BOS, *b"another"], ["a", "b"]).best


def test_a_decode_that_breaks_is_told_and_leaves_nothing():
    client, context = client_of(chaotic())
    with client:
        client.wait_until_ready()

        def fail(tokens, seq_ids):
            if seq_ids[0] >= 100:
                raise InternalError("broken")

        context.before_decode = fail
        with pytest.raises(InternalError, match="broken"):
            client.decide(PROMPT, ["ab", "cd"])
        context.before_decode = lambda tokens, seq_ids: None
        assert client.decide(PROMPT, ["ab", "cd"]).best
    with pytest.raises(InternalError, match="closed"):
        client.decide(PROMPT, ["ab", "cd"])


def test_documents_are_ranked_by_how_likely_the_answer_is_yes():
    def logits_of(tokens):
        text = bytes(token for token in tokens if token < 256)
        question, _, said = text.rpartition(b">")
        answer = b"Yes" if b"mill" in question.split(b"Document:")[1] else b"No"
        return one_hot(answer[len(said)] if answer.startswith(said) and said != answer else EOS)

    client, context = client_of(logits_of, n_slots=2)
    documents = ["a boat on the lake", "the mill stands by the river", "a road"]
    with client:
        ranked = client.rerank("where is it", documents)
        assert [each.index for each in ranked] == [1, 0, 2]
        assert ranked[0].score > 0.99 > 0.01 > ranked[1].score
        assert client.rerank("where is it", documents, top_n=1) == ranked[:1]
        assert client.rerank("where is it", []) == []
