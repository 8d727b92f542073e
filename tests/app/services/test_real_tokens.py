"""Replay and another candidate on the starter model, as the window asks for them."""

import pytest

import engine
from tests.make import models
from tests.make import window as make

LONG = "Tell me, in two plain sentences, how a candle burns and why its flame points upwards."


@pytest.fixture
def services(tmp_path, qapp, qtbot):
    path = models.smollm2()

    def client(_path, progress=None, **options):
        return engine.EngineClient(path, progress=progress, n_slots=2, n_ctx=1024)

    with make.services(tmp_path, client) as made:
        made.engine.load(path)
        qtbot.waitUntil(lambda: made.engine.state == "ready", timeout=60_000)
        made.replies.tokens.is_wanted = True
        yield made


def answer(services, qtbot, act, conversation_id):
    act()
    qtbot.waitUntil(lambda: not services.replies.running, timeout=60_000)
    return services.database.branch(conversation_id)[-1]


def test_replay_says_the_same_and_a_branch_reads_only_its_candidate(services, qtbot):
    params = {"n_predict": 12, "sampling": {"temperature": 1.1}}
    chat = services.chats.start(params=params).id
    first = answer(services, qtbot, lambda: services.chats.ask(chat, LONG), chat)
    assert first.state == "finished" and first.record["timings"]["n_read"] > 20
    again = answer(services, qtbot, lambda: services.chats.replay(first), chat)
    assert again.text == first.text and again.id != first.id
    known = services.replies.tokens.of(first.id)
    at = 6
    rival = next(r for r in known.tokens[at].top if r.token != known.tokens[at].token)
    begun = known.text_until(at) + rival.piece.decode()
    branch = answer(services, qtbot, lambda: services.chats.go_on_from(first, at, rival), chat)
    assert branch.text.startswith(begun) and branch.parent_id == first.parent_id
    assert branch.record["timings"]["n_read"] == 1  # the candidate; of the prompt nothing
    logged = services.replies.tokens.of(branch.id)
    assert logged.text_until(len(logged.tokens)) == branch.text
