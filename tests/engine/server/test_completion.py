"""One request through the engine thread: events, limits, stop types, counts, reuse, errors."""

import pytest

import engine
from engine.client.client import EngineClient
from tests.fakes.model import BOS, EOS, MARK, answering, chaotic, loaded


def client_of(logits_of, n_slots=1, **options):
    model = loaded(logits_of, **options)
    return EngineClient.over(lambda progress: model, n_slots), model.context


def ask(client, prompt="hi>", **options):
    return client.submit(engine.CompletionRequest(prompt, temperature=0, **options))


def kinds(events):
    return [type(event).__name__ for event in events]


def test_events_of_one_answer_in_order_with_exact_counts():
    client, context = client_of(answering(b"abc"), n_batch=3)
    with client:
        events = list(ask(client, "12345>"))
    assert kinds(events) == ["PromptProgress"] * 4 + ["TextDelta"] * 4 + ["Finished"]
    assert [(e.n_cached, e.n_read) for e in events[:4]] == [(0, 0), (0, 3), (0, 6), (0, 7)]
    last = events[-1]
    assert (last.text, last.stop_type, last.truncated) == ("abc", "eos", False)
    assert last.tokens == (*b"abc", EOS)
    assert (last.timings.n_prompt, last.timings.n_cached, last.timings.n_read) == (7, 0, 7)
    assert last.timings.n_generated == 4
    assert last.timings.first_token_ms > 0
    assert "".join(e.text for e in events if isinstance(e, engine.TextDelta)) == "abc"
    assert [len(tokens) for tokens, *_ in context.decodes] == [3, 3, 1, 1, 1, 1]


def test_the_same_prompt_again_reads_nothing_and_says_the_same():
    client, context = client_of(answering(b"abc"))
    with client:
        first = ask(client).result()
        second = ask(client).result()
        different = ask(client, cache_prompt=False).result()
    assert first.text == second.text == different.text == "abc"
    assert (second.timings.n_cached, second.timings.n_read) == (4, 0)
    assert (different.timings.n_cached, different.timings.n_read) == (0, 4)


def test_a_longer_conversation_reads_only_what_is_new():
    client, context = client_of(answering(lambda prompt: b"re:" + prompt[-2:-1]))
    with client:
        assert ask(client, "a>").result().text == "re:a"
        follow = ask(client, "a>re:ab>").result()
    assert (follow.text, follow.timings.n_cached, follow.timings.n_read) == ("re:b", 7, 2)


def test_going_back_and_editing_reads_only_the_new_text():
    client, _ = client_of(answering(b"ok"))
    with client:
        ask(client, "the long beginning, then this>").result()
        edited = ask(client, "the long beginning, but that>").result()
    assert edited.timings.n_cached == len("the long beginning, ") + 1
    assert edited.timings.n_read == len("but that>")


@pytest.mark.parametrize(
    ("options", "text", "stop_type", "stop_word"),
    [
        ({"n_predict": 2}, "ab", "limit", ""),
        ({"n_predict": 0}, "", "limit", ""),
        ({"stop": ["cd"]}, "ab", "word", "cd"),
        ({"stop": ["cX", "d"]}, "abc", "word", "d"),
        ({"stop": ["ef", "de"], "n_predict": 4}, "abcd", "limit", ""),
        ({"stop": ["zz"]}, "abcdef", "eos", ""),
    ],
)
def test_limits_and_stop_words(options, text, stop_type, stop_word):
    client, _ = client_of(answering(b"abcdef"))
    with client:
        events = list(ask(client, **options))
    last = events[-1]
    assert (last.text, last.stop_type, last.stop_word) == (text, stop_type, stop_word)
    assert "".join(e.text for e in events if isinstance(e, engine.TextDelta)) == text


def test_the_models_own_stop_words_count_too():
    client, _ = client_of(answering(b"user: "), stop_words=["ser:"])
    with client:
        assert ask(client, stop=["q"]).result().text == "u"


def test_special_tokens_are_not_text():
    client, _ = client_of(answering([*b"a", MARK, *b"b"]))
    with client:
        last = ask(client).result()
    assert (last.text, last.tokens) == ("ab", (*b"a", MARK, *b"b", EOS))


def test_the_indent_rule_ends_an_answer_with_a_limit():
    client, _ = client_of(answering(b"def f():\n    x\ny"))
    with client:
        last = ask(client, n_indent=2).result()
    assert (last.text, last.stop_type) == ("def f():\n    x\n", "limit")


def test_the_time_limit_counts_from_the_first_line_end(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("engine.server.settle.time.monotonic", lambda: now[0])
    model = loaded(answering(b"ab\ncd\nef"))

    def tick(tokens, seq_ids):
        now[0] += 0.010

    model.context.before_decode = tick
    with EngineClient.over(lambda progress: model, 1) as client:
        assert ask(client, t_max_predict_ms=25).result().text == "ab\ncd\n"


def test_a_full_context_stops_with_truncated():
    client, _ = client_of(answering(b"abcdefgh"), n_ctx=8)
    with client:
        last = ask(client, "12>").result()
    assert (last.stop_type, last.truncated, last.text) == ("limit", True, "abcd")


@pytest.mark.parametrize(
    ("prompt", "options", "kind", "says"),
    [
        ("x" * 40 + ">", {}, "context full", "42 tokens and the context holds 32"),
        ([1, 5000], {}, "request", "no tokens"),
        ([-1], {}, "request", "no tokens"),
        ("x>", {"n": 3}, "request", "slots"),
    ],
)
def test_requests_that_cannot_run_fail_with_a_reason(prompt, options, kind, says):
    client, _ = client_of(answering(b"a"), n_ctx=32)
    with client:
        failed = list(ask(client, prompt, **options))[-1]
        assert (failed.kind, says in failed.message) == (kind, True), failed
        assert ask(client).result().text == "a"


def test_an_empty_prompt_ends_at_once():
    client, context = client_of(answering(b"a"))
    with client:
        assert ask(client, []).result().stop_type == "limit"
    assert context.decodes == []


def test_probabilities_before_the_chain():
    client, _ = client_of(chaotic())
    with client:
        last = ask(client, [BOS, 1], n_probs=3, n_predict=2).result()
    assert len(last.probs) == 2
    for probs in last.probs:
        assert len(probs.top) == 3
        assert probs.token == probs.top[0].token  # greedy
        assert probs.logprob == probs.top[0].logprob > probs.top[1].logprob


def test_seeds_make_answers_repeatable_and_are_told():
    client, _ = client_of(chaotic())
    with client:
        request = engine.CompletionRequest([BOS, 5], n_predict=8)
        one = client.submit(request).result()
        again = client.submit(request.replace(seed=one.seed)).result()
        other = client.submit(request).result()
    assert one.tokens == again.tokens
    assert (one.tokens, one.seed) != (other.tokens, other.seed)


def test_a_slot_remembers_only_what_memory_holds():
    client, context = client_of(answering(b"abc"))
    with client:
        ask(client, n_predict=2).result()
        assert client.slots()[0].n_tokens == len(context.memory.tokens(0)) == 5
