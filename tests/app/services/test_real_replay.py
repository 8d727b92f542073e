"""Replay on the starter model: the same text, whatever changed while the first one was written."""

import pytest

from tests.make import window as make

NO_END = [[0, -100.0], [2, -100.0]]  # by chance an answer could be over too soon
LONG = "Tell me, in a few plain sentences, how a candle burns and why its flame points upwards."


@pytest.fixture
def services(tmp_path, qapp, qtbot):
    with make.starter_services(tmp_path, qtbot) as made:
        yield made


def last(services, chat):
    return services.database.branch(chat)[-1]


def settle(services, qtbot):
    qtbot.waitUntil(lambda: not services.replies.running, timeout=60_000)
    qtbot.waitUntil(lambda: not services.replies.running, timeout=60_000)


def wait_for_tokens(services, qtbot, chat, n):
    reply = services.replies.running[chat]
    qtbot.waitUntil(lambda: reply.n_arrived() >= n, timeout=60_000)


def test_values_moved_and_an_answer_stopped_and_continued_give_the_same_text(services, qtbot):
    sampling = {"temperature": 1.3, "top_k": 0, "logit_bias": NO_END}
    chat = services.chats.start(params={"n_predict": 400, "sampling": sampling}).id
    services.chats.ask(chat, LONG)
    wait_for_tokens(services, qtbot, chat, 5)
    services.chats.change_sampling(chat, {"temperature": 0.2, "repeat_penalty": 1.3})
    wait_for_tokens(services, qtbot, chat, 12)
    order = ["temperature", "top_k", "xtc"]
    services.chats.change_sampling(chat, {"samplers": order, "temperature": 1.6})
    wait_for_tokens(services, qtbot, chat, 20)
    services.chats.stop(chat)
    settle(services, qtbot)
    half = last(services, chat)
    assert [change["values"]["temperature"] for change in half.record["changes"]] == [0.2, 1.6]
    services.chats.change(
        chat, params={"n_predict": 12, "sampling": {"temperature": 0.7, "logit_bias": NO_END}}
    )
    services.chats.resume(half)
    settle(services, qtbot)
    whole = last(services, chat)
    assert whole.text.startswith(half.text) and len(whole.text) > len(half.text)
    assert services.chats.replay(whole) == []
    settle(services, qtbot)
    again = last(services, chat)
    assert again.id != whole.id and again.text == whole.text
    assert [run["changes"] for run in again.record["runs"]] == [half.record["changes"]]


def test_without_the_changes_the_text_would_be_another(services, qtbot):
    chat = services.chats.start(
        params={"n_predict": 24, "sampling": {"temperature": 1.4, "logit_bias": NO_END}}
    ).id
    services.chats.ask(chat, LONG)
    wait_for_tokens(services, qtbot, chat, 3)
    services.chats.change_sampling(chat, {"temperature": 0})
    settle(services, qtbot)
    first = last(services, chat)
    (change,) = first.record["changes"]
    assert 0 < change["at"] < 24
    services.chats.replay(first)
    settle(services, qtbot)
    assert last(services, chat).text == first.text
    record = {**first.record, "changes": []}
    services.database.update_message(first.id, record=record)
    services.chats.replay(services.database.message(first.id))
    settle(services, qtbot)
    assert last(services, chat).text != first.text
