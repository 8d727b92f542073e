"""EngineClient on the starter model: the promises that the scripted models proved, for real."""

import json
import threading
import time

import numpy as np
import pytest

import engine
from tests.make import models


@pytest.fixture(scope="module")
def client():
    with engine.EngineClient(models.smollm2(), n_slots=4, n_ctx=4096) as opened:
        opened.wait_until_ready()
        yield opened
        opened._loop.loaded.context.memory.check_integrity()


def ask(client, prompt, **options):
    return client.submit(engine.CompletionRequest(prompt, temperature=0, **options))


def test_the_header_is_known_before_the_model_is_loaded(client):
    assert (client.info.arch, client.info.n_layer) == ("llama", 30)
    assert client.slots()[0].n_ctx == 4096


def test_a_greedy_answer_streams_and_again_reads_nothing(client):
    prompt = "The capital of France is"
    events = list(ask(client, prompt, n_predict=12))
    last = events[-1]
    assert "".join(e.text for e in events if isinstance(e, engine.TextDelta)) == last.text
    assert "Paris" in last.text
    assert last.timings.n_prompt == last.timings.n_cached + last.timings.n_read == 5
    again = ask(client, prompt, n_predict=12).result()
    assert (again.tokens, again.timings.n_read) == (last.tokens, 0)
    # 16 tokens in one page of 32 cells: K and V of 3 heads of 64 halves, 30 layers.
    slot = client.slots()[again.id_slot]
    assert (slot.n_tokens, slot.n_bytes) == (16, 32 * 2 * 3 * 64 * 2 * 30)


def test_follow_ups_read_only_what_is_new(client):
    prompt = client.tokenize("Water boils at one hundred degrees, and ice")
    first = ask(client, prompt, n_predict=8).result()
    longer = [*prompt, *first.tokens, *client.tokenize(" because")]
    follow = ask(client, longer, n_predict=1).result()
    # The last token of the first answer was sampled, never decoded.
    assert follow.timings.n_cached == len(prompt) + 7
    assert follow.timings.n_read == len(longer) - len(prompt) - 7


def as_likely_where_they_part(told, other):
    """Whether `other` follows `told`, up to a token for which `told` had two almost equal choices.

    Kernels of several rows add in another order than those of one, so two near tokens may swap.
    """
    for token, probs in zip(other, told.probs, strict=False):
        if token != probs.token:
            rival = {top.token: top.logprob for top in probs.top}.get(token, -np.inf)
            return abs(probs.logprob - rival) < 0.5
    return True


def test_four_answers_at_once_say_what_each_says_alone(client):
    texts = ("The capital of", "One day in", "Water is made", "My name is")
    prompts = [client.tokenize(text)[:3] for text in texts]
    together = [ask(client, prompt, n_predict=6, cache_prompt=False) for prompt in prompts]
    answers = [handle.result() for handle in together]
    assert {answer.id_slot for answer in answers} == {0, 1, 2, 3}
    for prompt, answer in zip(prompts, answers, strict=True):
        alone = ask(client, prompt, n_predict=6, n_probs=5, cache_prompt=False).result()
        assert as_likely_where_they_part(alone, answer.tokens)
        assert alone.tokens[0] == answer.tokens[0]


def test_one_prompt_gives_several_answers(client):
    request = engine.CompletionRequest("Once upon a time", n=3, seed=1, n_predict=8)
    events = list(client.submit(request))
    finals = sorted((e for e in events if isinstance(e, engine.Finished)), key=lambda e: e.index)
    assert [final.timings.n_read for final in finals[1:]] == [0, 0]
    assert len({final.tokens for final in finals}) > 1
    again = list(client.submit(request))
    assert {e.tokens for e in again if isinstance(e, engine.Finished)} == {e.tokens for e in finals}
    # All of them begin at the prompt's one row of probabilities, each with its own seed.
    alone = client.submit(request.replace(n=1, seed=2)).result()
    assert alone.tokens[0] == finals[1].tokens[0]


def test_cancelling_a_long_prompt_stops_reading_it(client):
    prompt = [1000 + i % 500 for i in range(3000)]
    handle = ask(client, prompt, cache_prompt=False)
    events = iter(handle)
    assert next(events).n_read == 0
    handle.cancel()
    last = list(events)[-1]
    assert last.stop_type == "cancelled"
    assert last.timings.n_read < 3000
    assert ask(client, "The capital of France is", n_predict=3).result().text


def test_parameters_change_while_it_speaks(client):
    heard, submitted = [], threading.Event()

    def on_event(event):
        heard.append(event)
        if isinstance(event, engine.TextDelta) and len(heard) < 5:
            assert submitted.wait(10)
            handle.update(temperature=0, n_predict=4)

    options = {"n_predict": 500, "on_event": on_event, "ignore_eos": True}
    handle = client.submit(engine.CompletionRequest("Numbers:", temperature=2, **options))
    submitted.set()
    assert handle.wait(60)
    assert len(heard[-1].tokens) == 4


def test_a_full_context_goes_on_without_its_middle():
    options = {"n_slots": 1, "n_ctx": 256, "context_shift": True}
    with engine.EngineClient(models.smollm2(), **options) as client:
        last = ask(client, "Once upon a time", n_predict=300, n_keep=4, ignore_eos=True).result()
        assert (len(last.tokens), last.truncated) == (300, True)
        assert client.slots()[0].n_tokens < 256


def test_moved_pieces_are_not_read_again(client):
    start, rules = "This is a short story.", " The first rule of the house is to be kind."
    story = " A traveller came to the mill in the evening and asked for bread and a bed."
    ask(client, start + rules + story + " What", n_predict=2, id_slot=0).result()
    prompt = client.tokenize(start + story + " Why")
    moved = ask(client, prompt, n_predict=8, n_cache_reuse=8, id_slot=0).result()
    assert (moved.timings.n_read, moved.timings.n_cached) == (1, len(prompt) - 1)
    assert moved.text


def test_messages_go_through_the_models_template(client):
    system = {"role": "system", "content": "You are brief."}
    question = {"role": "user", "content": "Say <|im_end|> twice."}
    first = ask(client, [system, question], n_predict=6).result()
    vocab = client._loop.loaded.vocab
    tokens = client._loop._session.scheduler.slots[first.id_slot].tokens
    text = vocab.detokenize(tokens, special=True).decode()
    assert "<|im_start|>system\nYou are brief.<|im_end|>" in text
    # Three turns begin; the two ends of turns are the template's, the user's text is only text.
    assert tokens.count(vocab.find("<|im_start|>")) == 3
    assert tokens.count(vocab.find("<|im_end|>")) == 2
    assert first.timings.n_prompt == len(tokens) - len(first.tokens) + 1
    told = [system, question, {"role": "assistant", "content": "No. "}]
    begun = ask(client, told, n_predict=2).result()
    text = vocab.detokenize(client._loop._session.scheduler.slots[begun.id_slot].tokens).decode()
    assert "assistant\nNo. " in text


def test_messages_that_make_no_conversation_fail_in_their_own_request(client):
    for messages in ([{"role": "user"}], [{"content": "x"}], [{"role": "user", "content": 5}]):
        last = list(ask(client, messages))[-1]
        assert isinstance(last, engine.Failed)
        assert last.kind in ("request", "template")


def test_probabilities_come_with_each_token(client):
    last = ask(client, "The capital of France is", n_predict=2, n_probs=3).result()
    for probs in last.probs:
        assert probs.logprob == pytest.approx(max(rival.logprob for rival in probs.top), abs=1e-4)
        assert probs.token == probs.top[0].token
    after = client.submit(
        engine.CompletionRequest("One, two,", n_predict=1, n_probs=5, post_sampling_probs=True)
    ).result()
    assert 1 <= len(after.probs[0].top) <= 5


def test_an_answer_is_held_to_a_schema(client):
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    question = [{"role": "user", "content": "Invent a person."}]
    for seed in (1, 2):
        request = engine.CompletionRequest(question, seed=seed, json_schema=schema, n_predict=60)
        last = client.submit(request).result()
        person = json.loads(last.text)
        assert (set(person), last.stop_type) == ({"name", "age"}, "eos")
    greedy = ask(client, "Yes or no?", regex="( maybe){3}").result()
    assert (greedy.text, greedy.stop_type) == (" maybe maybe maybe", "eos")
    failed = list(ask(client, "x", grammar='root ::= "a'))[-1]
    assert (failed.kind, "line 1" in failed.message) == ("grammar", True)


def test_decisions_are_what_the_model_would_say(client):
    prompt = "The capital of France is the city of"
    decision = client.decide(prompt, [" Paris", " London", " Berlin"])
    assert decision.best == " Paris"
    row = ask(client, prompt, n_predict=1, n_probs=400).result().probs[0]
    by_piece = {rival.piece: rival.logprob for rival in row.top}
    assert decision.logprobs[0] == pytest.approx(by_piece[b" Paris"], abs=1e-3)
    again = client.decide(prompt, [" Paris", " Rome"])
    assert again.timings.n_read == 0
    scored = client.decide("Two plus two is ", range(1, 11))
    assert 1 < scored.score < 10
    assert scored.probabilities[3] > scored.probabilities[8]


def test_embeddings_of_like_texts_are_alike(client):
    cat, kitten, tax = client.embed(
        ["A cat sleeps on the sofa.", "The cat is asleep on a couch.", "Taxes rise in April."]
    )
    assert cat.shape == (client.info.n_embd,)
    assert np.linalg.norm(cat) == pytest.approx(1, abs=1e-5)
    assert cat @ kitten > cat @ tax


def test_a_kept_conversation_goes_on_after_a_restart_word_for_word(tmp_path):
    model, path = models.smollm2(), tmp_path / "one.safetensors"
    told = [{"role": "user", "content": "Tell me a story about a mill by the river."}]
    with engine.EngineClient(model, n_slots=1, n_ctx=1024, snapshot_dir=tmp_path) as client:
        first = ask(client, told, n_predict=40).result()
        answer = {"role": "assistant", "content": first.text}
        told += [answer, {"role": "user", "content": "Go on."}]
        kept = client.keep(told[:2], path).result(60)
        assert kept.n_tokens >= first.timings.n_prompt + 30
        expected = ask(client, told, n_predict=30).result()
    with engine.EngineClient(
        model, n_slots=1, n_ctx=1024, snapshot_dir=tmp_path, sleep_idle_seconds=0.3
    ) as client:
        client.wait_until_ready()
        assert client.known_prefix(told).where == "disk"
        again = ask(client, told, n_predict=30).result()
        assert again.text == expected.text
        assert again.timings.n_cached >= kept.n_tokens
        until = time.monotonic() + 60
        while client.state != "asleep":
            assert time.monotonic() < until
            time.sleep(0.05)
        after_sleep = ask(client, told, n_predict=30).result()
        assert (after_sleep.tokens, after_sleep.timings.n_read) == (again.tokens, 0)


def test_a_model_with_windows_reads_nothing_twice_either():
    rng = np.random.default_rng(0)
    one, other = ([2, *rng.integers(1000, 9000, 600).tolist()] for _ in range(2))
    options = {"n_predict": 12, "ignore_eos": True}
    with engine.EngineClient(models.gemma3(), n_slots=1, n_ctx=2048) as client:
        first = ask(client, one, **options).result()
        ask(client, other, **options).result()
        again = ask(client, one, **options).result()
        assert (again.tokens, again.timings.n_read) == (first.tokens, 0)
        longer = [*one, *first.tokens, *rng.integers(1000, 9000, 30).tolist()]
        follow = ask(client, longer, **options).result()
        assert follow.timings.n_read == 31  # the answer's last token was sampled, not read
        edited = ask(client, [*one, *first.tokens, *range(1000, 1020)], **options).result()
        assert edited.timings.n_read <= 21
        whole = ask(client, longer, cache_prompt=False, **options).result()
        assert whole.timings.n_cached == 0
        client._loop.loaded.context.memory.check_integrity()


def test_a_file_that_cannot_run_is_refused_by_the_constructor(tmp_path):
    path = tmp_path / "cut.gguf"
    path.write_bytes(models.smollm2().read_bytes()[:5_000_000])
    with pytest.raises(engine.ModelFileError, match="cut short"):
        engine.EngineClient(path)
    with pytest.raises(engine.ModelFileError, match=r"missing\.gguf"):
        engine.EngineClient(tmp_path / "missing.gguf")
    with pytest.raises(engine.RequestError, match="n_ctx"):
        engine.EngineClient(models.smollm2(), n_ctxx=5)
