"""What a grammar does to an answer as the trace tells it, on the starter model."""

import json

import pytest

import engine
from tests.make import models

ASK = [{"role": "user", "content": "Is the sky blue? Answer in one word."}]


@pytest.fixture(scope="module")
def client():
    with engine.EngineClient(models.smollm2(), n_slots=2, n_ctx=1024) as opened:
        opened.wait_until_ready()
        yield opened


def ask(client, prompt=ASK, **options):
    options = {"temperature": 0, "n_predict": 40, "n_probs": 8, "trace": True} | options
    return client.submit(engine.CompletionRequest(prompt, **options)).result()


def test_candidates_that_the_grammar_forbids_have_nothing_left(client):
    last = ask(client, regex="(maybe|perhaps)")
    assert last.text in ("maybe", "perhaps")
    first = last.probs[0]
    assert first.stages[-1].probs[first.token] > 0
    rivals = [rival.token for rival in first.top if rival.token != first.token]
    fits = {rival.token for rival in first.top if b"maybe".startswith(rival.piece)}
    fits |= {rival.token for rival in first.top if b"perhaps".startswith(rival.piece)}
    cut = [token for token in rivals if token not in fits]
    assert cut and all(first.stages[-1].probs.get(token, 0.0) == 0 for token in cut)
    assert all(first.stages[0].probs.get(token, 0.0) == 0 for token in cut)
    assert {rival.token for rival in first.top if rival.is_forbidden} == set(cut)


def test_rivals_are_held_to_the_grammar_where_the_first_choice_already_fits(client):
    free = ask(client, n_predict=1)
    word = free.text
    last = ask(client, regex=f"{word}[a-z ,.]*", n_predict=1)
    first = last.probs[0]
    assert first.token == free.tokens[0]
    fits = [rival.token for rival in first.top if rival.piece.decode().startswith(word)]
    cut = [rival.token for rival in first.top if rival.token not in [first.token, *fits]]
    name, n_left, probs = first.stages[-1]
    assert name == "grammar" and cut and all(probs[token] == 0 for token in cut)
    assert probs[first.token] == first.stages[-2].probs[first.token] > 0
    assert {rival.token for rival in first.top if rival.is_forbidden} == set(cut)
    assert 1 <= n_left <= first.stages[-2].n_left and first.stages[0].probs[cut[0]] > 0


def test_the_end_of_an_answer_is_marked_as_such(client):
    last = ask(client, regex="(maybe|perhaps)", n_predict=8, ignore_eos=False)
    ends = [known.is_end for known in last.probs]
    assert not any(ends[:-1])
    free = ask(client, n_predict=40)
    if free.stop_type == "eos":
        assert free.probs[-1].is_end and not free.probs[0].is_end
    seen = [rival for known in free.probs for rival in known.top if rival.is_end]
    assert all(rival.piece in (b"<|im_end|>", b"<|endoftext|>") for rival in seen)


def test_an_answer_that_goes_on_stays_inside_its_grammar(client):
    schema = {
        "type": "object",
        "properties": {"colour": {"type": "string", "maxLength": 12}, "sure": {"type": "boolean"}},
        "required": ["colour", "sure"],
        "additionalProperties": False,
    }
    begun = '{"colour": "bl'
    prompt = [*ASK, {"role": "assistant", "content": begun}]
    last = ask(client, prompt, json_schema=schema, n_predict=60)
    whole = json.loads(begun + last.text)
    assert whole["colour"].startswith("bl") and isinstance(whole["sure"], bool)


def test_a_beginning_that_does_not_fit_leaves_the_grammar_to_what_follows(client):
    prompt = [*ASK, {"role": "assistant", "content": "I would say: "}]
    assert ask(client, prompt, regex="(maybe|perhaps)").text in ("maybe", "perhaps")
