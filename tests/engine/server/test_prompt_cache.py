"""Nothing is read twice: every test counts the tokens that the model was given."""

import threading
import time

import pytest

import engine
from engine.client.client import EngineClient
from engine.errors import InternalError
from engine.server.loop import Keeping
from tests.fakes.gate import Gate
from tests.fakes.model import BOS, EOS, answering, chaotic, encode, loaded
from tests.fakes.paged import PagedContext

SYSTEM = "you are a patient teacher of history who likes short answers. "
PLENTY = Keeping(cache_bytes=1 << 30)


def restless(tokens):
    """What chaotic() says, without ever coming to an end."""
    row = chaotic()(tokens)
    row[EOS] = -100
    return row


def client_of(logits_of, n_slots=1, keeping=PLENTY, **options):
    model = loaded(logits_of, **options)
    return EngineClient.over(lambda progress: model, n_slots, keeping=keeping), model.context


def ask(client, prompt, **options):
    return client.submit(engine.CompletionRequest(prompt, temperature=0, **options)).result()


def conversation(client, opening, n_turns):
    """Say something n_turns times; return the last answer and the text so far."""
    text = opening
    for i in range(n_turns):
        text += f" question {i} about {opening[-5:]}?>"
        last = ask(client, text)
        text += last.text
    return last, text


def test_a_second_conversation_reads_only_what_differs():
    client, _ = client_of(answering(b"ok"), n_slots=2)
    with client:
        ask(client, SYSTEM + "who was the first emperor of this land?>")
        second = ask(client, SYSTEM + "and when?>")
    assert second.timings.n_read == len("and when?>")
    assert second.timings.n_cached == 1 + len(SYSTEM)


def test_a_slot_that_goes_on_elsewhere_still_knows_what_it_left():
    client, context = client_of(answering(b"ok"), n_slots=1)
    with client:
        first = SYSTEM + "who was the first emperor of this land, and whom did he follow?>"
        ask(client, first)
        other = ask(client, "something else entirely, and quite long too>")
        assert other.timings.n_cached == 1
        back = ask(client, first + "ok, thanks. and then?>")
        assert back.timings.n_read == len(", thanks. and then?>")
        again = ask(client, "something else entirely, and quite long too>")
        assert (again.timings.n_read, again.text) == (0, "ok")


def test_going_back_two_messages_reads_only_the_new_text_and_the_old_branch_stays():
    client, _ = client_of(answering(b"a long enough answer"), n_slots=1)
    with client:
        _, text = conversation(client, SYSTEM, 3)
        start = text[: text.index(" question 1")]
        edited = ask(client, start + " something else?>")
        assert edited.timings.n_read == len("something else?>")
        old = ask(client, text + " question 3?>")
        assert old.timings.n_read == len(" question 3?>")


def test_regenerating_reads_nothing_in_a_slot_and_from_what_was_left():
    client, context = client_of(answering(b"a long enough answer"), n_slots=1)
    with client:
        prompt = SYSTEM + "why?>"
        first = ask(client, prompt)
        for _ in range(3):
            again = ask(client, prompt)
            assert (again.timings.n_read, again.tokens) == (0, first.tokens)
        ask(client, "another conversation, so that the slot has to leave it>")
        back = ask(client, prompt)
        assert (back.timings.n_read, back.tokens) == (0, first.tokens)


def test_twenty_conversations_over_four_slots_read_nothing_twice():
    client, context = client_of(answering(b"well, yes"), n_slots=4, n_cells=20_000)
    openings = [f"conversation number {i}, of which there are many: " for i in range(20)]
    texts = dict.fromkeys(openings, "")
    with client:
        for turn in range(4):
            for opening in openings:
                said = texts[opening] or opening
                new = f" turn {turn}?>"
                last = ask(client, said + new)
                texts[opening] = said + new + last.text
                if turn:
                    assert last.timings.n_read == len(new)
    n_told = sum(len(text) for text in texts.values())
    shared_openings = 20 * len("conversation number ")
    assert context.n_tokens_decoded <= n_told
    assert context.n_tokens_decoded >= n_told - shared_openings - 20 * 4


@pytest.mark.parametrize("window", [0, 32])
def test_real_pages_read_nothing_twice_either(window):
    context = PagedContext(restless, 512, 3, window=window, snapshot_bytes=1 << 22)
    client, _ = client_of(None, n_slots=2, context=context, forks=(2,), n_ctx=512)
    openings = [[BOS, *range(i, i + 60)] for i in range(0, 60, 10)]
    texts = {i: list(opening) for i, opening in enumerate(openings)}
    with client:
        for turn in range(3):
            for i, said in texts.items():
                last = ask(client, [*said, 200 + turn], n_predict=12)
                if turn:  # the answer's last token was sampled, never read
                    assert last.timings.n_read == 2, (turn, i)
                said += [200 + turn, *last.tokens]
                again = ask(client, said[: len(said) - 12], n_predict=12)
                assert (again.timings.n_read, again.tokens) == (0, last.tokens)
        context.memory.check_integrity()


def test_what_a_window_has_let_go_of_is_gone_back_to_by_marks():
    context = PagedContext(restless, 1024, 2, window=32)
    client, _ = client_of(None, context=context, forks=(1,), n_ctx=1024)
    with client:
        said = [BOS, *range(100)]
        for turn in range(4):
            said += [*range(100 + turn, 150)]
            last = ask(client, said, n_predict=40)
            assert last.tokens == tuple(_greedy(said, 40))
            said += last.tokens
        start = said[: 101 + 50 + 40]  # before the second turn
        edited = ask(client, [*start, 7, 7, 7], n_predict=3)
        assert edited.timings.n_read <= 4
        assert edited.tokens == tuple(_greedy([*start, 7, 7, 7], 3))


def _greedy(prompt, n):
    said = list(prompt)
    while len(said) < len(prompt) + n:
        said.append(int(restless(said).argmax()))
    return said[len(prompt) :]


def test_the_least_recently_used_goes_when_the_limit_is_reached():
    client, context = client_of(answering(b"ok"), keeping=Keeping(cache_bytes=150))
    texts = [f"{i}{i}{i} conversation with some forty letters in it>" for i in range(6)]
    with client:
        for text in texts:
            ask(client, text)
        assert context.memory.stats()["bytes_kept"] <= 150
        metrics = client.metrics()
        assert metrics.prompts_held_bytes == context.memory.stats()["bytes_kept"] > 0
        assert metrics.prompts_held == len(context.memory.snapshots)
        recent = ask(client, texts[4])
        assert recent.timings.n_read == 0
        oldest = ask(client, texts[0])
        assert oldest.timings.n_cached == 1


def test_without_a_cache_only_slots_remember():
    client, context = client_of(answering(b"ok"), keeping=Keeping())
    with client:
        ask(client, "the first conversation>")
        ask(client, "a second conversation>")
        assert ask(client, "the first conversation>").timings.n_cached == 1
    assert context.memory.snapshots == []


def test_held_prompts_give_way_before_anything_fails_and_busy_slots_never_do():
    client, context = client_of(answering(b"x" * 50), n_slots=2, n_cells=200)
    gate = Gate(context)
    with client:
        busy = client.submit(engine.CompletionRequest("a busy one>", temperature=0))
        gate.step(4)
        gate.open()
        for i in range(8):
            assert ask(client, f"{i} and something of thirty letters>").text == "x" * 50
        assert busy.result().text == "x" * 50
        assert context.memory.n_used() <= 200


def test_two_prompts_with_one_beginning_at_once_read_it_once():
    client, context = client_of(answering(b"ok"), n_slots=2, n_batch=16)
    gate = Gate(context)
    with client:
        first = client.submit(engine.CompletionRequest(SYSTEM + "one?>", temperature=0))
        gate.wait()
        second = client.submit(engine.CompletionRequest(SYSTEM + "another?>", temperature=0))
        gate.open()
        results = [first.result(), second.result()]
    assert [r.text for r in results] == ["ok", "ok"]
    assert results[1].timings.n_read == len("another?>")
    assert results[1].timings.n_cached == len(SYSTEM) + 1


@pytest.mark.parametrize("window", [0, 32])
@pytest.mark.parametrize(
    ("tails", "n_read"),
    [
        # Each reads what is its own; the last token of a prompt when its logits are not known.
        (([201, 202, 203] * 20, [204] * 7), [60, 7]),
        (([], []), [0, 0]),
        (([201] * 40, []), [40, 1]),
        (([], [204] * 9), [0, 9]),
        (([201] * 20, [201] * 20 + [7], [201, 9]), [20, 1, 1]),
    ],
)
def test_windows_meet_where_prompts_part(window, tails, n_read):
    context = PagedContext(restless, 1024, 4, window=window, snapshot_bytes=1 << 20)
    gate = Gate(context)
    client, _ = client_of(None, n_slots=3, context=context, forks=(3,), n_ctx=1024, n_batch=48)
    start = [BOS, *range(150)]
    with client:
        handles = []
        for tail in tails:
            request = engine.CompletionRequest([*start, *tail], temperature=0, n_predict=3)
            handles.append(client.submit(request))
            gate.wait()
        while client._loop._intake.n_waiting:
            pass
        gate.open()
        lasts = [handle.result() for handle in handles]
        for tail, last in zip(tails, lasts, strict=True):
            said = [*start, *tail]
            for token in last.tokens:
                assert token == int(restless(said).argmax())
                said.append(token)
    assert sum(last.timings.n_read for last in lasts) == len(start) + sum(n_read)
    assert [last.timings.n_read for last in lasts][1:] == n_read[1:]


def chat(*contents):
    roles = ("user", "assistant")
    return [{"role": roles[i % 2], "content": text} for i, text in enumerate(contents)]


@pytest.mark.parametrize("window", [0, 32])
def test_a_question_asked_otherwise_reads_what_is_new_though_all_was_read_at_once(window):
    context = PagedContext(restless, 1024, 2, window=window, snapshot_bytes=1 << 20)
    client, _ = client_of(None, n_slots=1, context=context, forks=(1,), n_ctx=1024, n_batch=64)
    told = ["tell me of the mill", "it stands by the river" * 5, "and of the river"]
    with client:
        for last, other in (("why " * 30, "who " * 20), ("x", "xylophone"), ("", "y")):
            long = chat(*told, last, "And now? " * 30)
            first = client.submit(engine.CompletionRequest(long, temperature=0, n_predict=50))
            assert first.result().timings.n_read > 300
            asked = chat(*told, last, other)
            again = client.submit(engine.CompletionRequest(asked, temperature=0, n_predict=5))
            last_event = again.result()
            assert last_event.timings.n_read <= len(other) + len("\n>") + 1
            assert last_event.tokens[0] == int(restless(encode(asked)).argmax())
            told = [text + "!" for text in told]


def test_who_waits_for_a_beginning_goes_on_when_its_reader_is_cancelled():
    client, context = client_of(answering(b"ok"), n_slots=2, n_batch=16)
    gate = Gate(context)
    with client:
        first = client.submit(engine.CompletionRequest(SYSTEM + "one?>", temperature=0))
        gate.step(1)
        second = client.submit(engine.CompletionRequest(SYSTEM + "another?>", temperature=0))
        gate.step(1)
        first.cancel()
        gate.open()
        assert first.result().stop_type == "cancelled"
        last = second.result()
    assert last.text == "ok"
    assert last.timings.n_cached >= 32


def test_known_prefix_says_where_and_how_much_also_during_a_decode():
    client, context = client_of(answering(b"ok"))
    gate = Gate(context)
    with client:
        prompt = SYSTEM + "who?>"
        assert client.wait_until_ready(10)
        assert client.known_prefix(prompt) == engine.KnownPrefix("", 0, len(prompt) + 1)
        running = client.submit(engine.CompletionRequest(prompt, temperature=0))
        gate.step(2)
        assert client.known_prefix(prompt).where == "slot"
        gate.open()
        running.result()
        known = client.known_prefix(prompt + "ok, and")
        assert (known.where, known.n_tokens) == ("slot", len(prompt) + 3)
        ask(client, "another conversation, long enough to be kept>")
        known = client.known_prefix(prompt + "ok, and")
        assert (known.where, known.n_tokens) == ("memory", len(prompt) + 3)
        with pytest.raises(engine.RequestError):
            client.known_prefix(5)


def test_a_template_that_takes_its_time_keeps_no_one_waiting():
    client, context = client_of(answering(b"x" * 400), n_slots=2)
    is_slow, may_end = threading.Event(), threading.Event()
    with client:
        client.wait_until_ready()
        encoded = client._loop.loaded.encode

        def slow(prompt):
            if not isinstance(prompt, str):
                is_slow.set()
                assert may_end.wait(10)
            return encoded(prompt)

        client._loop.loaded.encode = slow
        fast = client.submit(engine.CompletionRequest("x>", temperature=0))
        late = client.submit(engine.CompletionRequest([{"role": "user", "content": "hi"}]))
        assert is_slow.wait(10)
        assert fast.result().text == "x" * 400
        assert not late.is_finished
        may_end.set()
        assert late.result().text == "x" * 400


def test_a_template_that_fails_ends_its_own_request_only(caplog):
    client, context = client_of(answering(b"ok"))
    with client:
        client.wait_until_ready()
        encoded = client._loop.loaded.encode

        def failing(prompt):
            if prompt == "bad":
                raise ZeroDivisionError("in line 3")
            return encoded(prompt)

        client._loop.loaded.encode = failing
        handles = [client.submit(engine.CompletionRequest(p)) for p in ("a>", "bad", "b>")]
        assert handles[0].result().text == handles[2].result().text == "ok"
        with pytest.raises(InternalError, match="line 3"):
            handles[1].result()


def test_closing_while_prompts_are_prepared_ends_them_all():
    client, context = client_of(answering(b"ok"))
    client.wait_until_ready()
    started = threading.Event()

    def slow(prompt):
        started.set()
        time.sleep(0.05)
        return [BOS, 62]

    client._loop.loaded.encode = slow
    handles = [client.submit(engine.CompletionRequest("x>")) for _ in range(5)]
    assert started.wait(10)
    client.close()
    assert {handle.result().stop_type for handle in handles} <= {"cancelled", "eos"}
    assert not [t.name for t in threading.enumerate() if t.name.startswith("engine")]
