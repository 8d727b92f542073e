"""An answer is written again as it was: changes where they were, runs one after the other."""

import pytest

import engine
from app.services.replay import differences, steps_of
from tests.make import window as make

REPLY = "one two three four five six seven eight"


@pytest.fixture
def clients():
    return make.Clients(reply=REPLY, tokens_per_second=0, n_prompt=0)


@pytest.fixture
def services(tmp_path, clients, qapp, qtbot):
    with make.services(tmp_path, clients) as made:
        made.engine.load(tmp_path / "fake.gguf")
        qtbot.waitUntil(lambda: made.engine.state == "ready")
        yield made


def settle(services, qtbot):
    qtbot.waitUntil(lambda: not services.replies.running)


def ask(services, text="Hello", **params):
    chat = services.chats.start(params=params).id
    services.chats.ask(chat, text)
    return chat


def last(services, chat):
    return services.database.branch(chat)[-1]


def test_what_changed_on_the_way_changes_at_the_same_token_again(services, clients, qtbot):
    chat = ask(services, sampling={"temperature": 0.3})
    clients.last.advance(4)
    services.chats.change_sampling(chat, {"temperature": 1.5, "top_k": 7})
    clients.last.advance(3)
    services.chats.end_reasoning(chat)
    clients.last.advance(30)
    settle(services, qtbot)
    first = last(services, chat)
    changes = first.record["changes"]
    assert [change["values"] for change in changes] == [
        {"temperature": 1.5, "top_k": 7},
        {"reasoning_budget": 0},
    ]
    services.chats.replay(first)
    request = clients.last.requests[-1]
    assert request.params.temperature == 0.3 and request.params.seed == first.record["seed"]
    assert list(request.changes) == [(c["at"], c["values"]) for c in changes]
    clients.last.advance(30)
    with qtbot.waitSignal(services.chats.replayed) as told:
        settle(services, qtbot)
    assert told.args == [chat, True]
    again = last(services, chat)
    assert again.text == first.text and again.record["changes"] == changes


def test_an_answer_that_was_stopped_and_continued_takes_the_same_steps(services, clients, qtbot):
    chat = ask(services, sampling={"temperature": 0.3})
    clients.last.advance(5)
    services.chats.stop(chat)
    settle(services, qtbot)
    half = last(services, chat)
    services.chats.change_sampling(chat, {"temperature": 0.9})
    services.chats.resume(half)
    clients.last.advance(30)
    settle(services, qtbot)
    whole = last(services, chat)
    (earlier,) = whole.record["runs"]
    assert earlier["n_run"] == half.record["timings"]["n_generated"]
    assert (earlier["start"], earlier["end"]) == (0, len(half.text))
    n_before = len(clients.last.requests)
    services.chats.change_sampling(chat, {"temperature": 2.0})
    services.chats.replay(whole)
    clients.last.advance(60)
    qtbot.waitUntil(lambda: len(clients.last.requests) == n_before + 2)
    clients.last.advance(60)
    settle(services, qtbot)
    one, two = clients.last.requests[n_before:]
    assert (one.params.temperature, two.params.temperature) == (0.3, 0.9)
    assert one.n_cached_most == earlier["n_cached"]
    assert one.n_predict == earlier["n_run"] and two.n_predict == -1
    assert (one.params.seed, two.params.seed) == (earlier["seed"], whole.record["seed"])
    assert two.prompt[-1] == {"role": "assistant", "content": half.text}
    again = last(services, chat)
    assert again.id != whole.id and again.text == whole.text
    assert [run["n_run"] for run in again.record["runs"]] == [earlier["n_run"]]


def test_a_beginning_that_was_chosen_by_hand_is_kept_as_it_is(services, clients, qtbot):
    chat = ask(services)
    clients.last.advance(30)
    settle(services, qtbot)
    first = last(services, chat)
    services.chats.edit(first, "My own beginning")
    services.chats.resume(last(services, chat))
    clients.last.advance(30)
    settle(services, qtbot)
    whole = last(services, chat)
    services.chats.replay(whole)
    assert clients.last.requests[-1].prompt[-1]["content"] == "My own beginning"
    clients.last.advance(30)
    settle(services, qtbot)
    assert last(services, chat).text == whole.text and last(services, chat).id != whole.id


def test_stopping_a_replay_ends_all_its_steps(services, clients, qtbot):
    chat = ask(services)
    clients.last.advance(5)
    services.chats.stop(chat)
    settle(services, qtbot)
    services.chats.resume(last(services, chat))
    clients.last.advance(30)
    settle(services, qtbot)
    services.chats.replay(last(services, chat))
    clients.last.advance(2)
    services.chats.stop(chat)
    settle(services, qtbot)
    n = len(clients.last.requests)
    clients.last.advance(10)
    assert len(clients.last.requests) == n and last(services, chat).state == "cancelled"


def test_an_answer_that_comes_out_another_one_is_told_apart(services, clients, qtbot):
    chat = ask(services)
    clients.last.advance(30)
    settle(services, qtbot)
    clients.last.reply = "something else"
    with qtbot.waitSignal(services.chats.replayed) as told:
        services.chats.replay(last(services, chat))
        clients.last.advance(30)
        settle(services, qtbot)
    assert told.args == [chat, False]


def test_the_prompt_is_the_one_of_then(services, clients, qtbot):
    chat = ask(services, system="Be brief.")
    clients.last.advance(30)
    settle(services, qtbot)
    first = last(services, chat)
    services.chats.change(chat, params={"system": "Be long."})
    services.chats.replay(first)
    assert clients.last.requests[-1].prompt[0] == {"role": "system", "content": "Be brief."}
    clients.last.advance(30)
    settle(services, qtbot)


def test_what_cannot_give_the_same_text_says_why(services, clients, qtbot):
    chat = ask(services)
    clients.last.advance(30)
    settle(services, qtbot)
    record = last(services, chat).record
    now = services.engine
    assert differences(record, now) == []
    (other,) = differences({**record, "mark": "0" * 16, "model": "Ember 7B"}, now)
    assert "Ember 7B" in other and "fake" in other
    context = {**record["context"], "type_k": "q4_0"}
    (types,) = differences({**record, "context": context}, now)
    assert "q4_0" in types and "f16" in types
    (full,) = differences({**record, "truncated": True}, now)
    assert "full" in full
    old = {key: value for key, value in record.items() if key not in ("n_run", "start")}
    (rough,) = differences({**old, "changes": [{"at": 3, "values": {"top_k": 1}}]}, now)
    assert "older version" in rough


def test_a_run_that_failed_is_no_run_to_repeat(services, clients, qtbot):
    chat = ask(services)
    clients.last.advance(5)
    services.chats.stop(chat)
    settle(services, qtbot)
    clients.last.fail_next(engine.MachineError("The memory is full."), 2)
    services.chats.resume(last(services, chat))
    clients.last.advance(30)
    settle(services, qtbot)
    failed = last(services, chat)
    assert failed.state == "failed" and "seed" not in failed.record
    (why,) = services.chats.replay(failed)
    assert "No seed" in why and not services.replies.running
    services.chats.resume(failed)
    clients.last.advance(30)
    settle(services, qtbot)
    whole = last(services, chat)
    assert len(whole.record["runs"]) == 2
    (step,) = steps_of(whole.record)  # what stood there before is given
    assert whole.text[: step["start"]] == failed.text


def test_records_of_older_versions_are_one_run_from_the_beginning():
    old = {"seed": 4, "sampling": {"top_k": 3}, "limits": {"n_predict": 8}, "changes": []}
    (step,) = steps_of(old)
    assert step["options"]["params"] == {"top_k": 3, "seed": 4}
    assert step["options"]["n_predict"] == 8 and step["start"] == 0
    assert steps_of({}) == [] and steps_of({"error": {}}) == []


def test_a_gap_in_what_is_known_is_given_text():
    def run(start, end, **more):
        return {"seed": 1, "start": start, "end": end, "n_run": 2, "stop_type": "eos", **more}

    record = run(30, 40, runs=[run(0, 10), run(10, 20)])
    assert [step["start"] for step in steps_of(record)] == [30]
    record = run(20, 40, runs=[run(5, 10), run(10, 20)])
    assert [step["start"] for step in steps_of(record)] == [5, 10, 20]


def test_a_limit_moved_on_the_way_does_not_move_the_end_of_a_stopped_run():
    changes = [{"at": 2, "values": {"n_predict": 99, "top_k": 1}}]
    record = {"seed": 1, "start": 0, "end": 4, "n_run": 6, "stop_type": "cancelled"}
    (step,) = steps_of({**record, "changes": changes})
    assert step["options"]["n_predict"] == 6
    assert step["options"]["changes"] == [(2, {"top_k": 1})]
    engine.CompletionRequest("x", **step["options"])
