"""What is told of tokens is kept while someone looks, and another candidate begins a branch."""

import math

import pytest

import engine
from app.services.token_log import N_ANSWERS, TokenLog, candidates, shown
from tests.make import window as make


def seeded(request):
    return f"seed {request.params.seed} and {request.params.temperature:g} as told"


@pytest.fixture
def clients():
    return make.Clients(reply=seeded)


@pytest.fixture
def services(tmp_path, clients, qapp, qtbot):
    with make.services(tmp_path, clients) as made:
        made.engine.load(tmp_path / "fake.gguf")
        qtbot.waitUntil(lambda: made.engine.state == "ready")
        yield made


def ask(services, qtbot, **params):
    conversation = services.chats.start(params=params)
    services.chats.ask(conversation.id, "Hello")
    qtbot.waitUntil(lambda: not services.replies.running)
    return services.database.branch(conversation.id)[-1]


def test_nothing_is_asked_for_while_nobody_looks(services, clients, qtbot):
    message = ask(services, qtbot)
    request = clients.last.requests[-1]
    assert (request.n_probs, request.trace) == (0, False)
    assert services.replies.tokens.of(message.id) is None


def test_the_tokens_of_an_answer_are_its_text(services, qtbot):
    services.replies.tokens.is_wanted = True
    message = ask(services, qtbot)
    known = services.replies.tokens.of(message.id)
    assert known.text_until(len(known.tokens)) == message.text
    rows = candidates(known.tokens[0])
    assert [row.is_chosen for row in rows[:3]] == [True, False, False]
    assert [row.before for row in rows[:3]] == pytest.approx([0.5, 0.25, 0.125])
    assert [row.cut_by for row in rows[:3]] == ["", "", "top-k"]
    assert rows[0].after + rows[1].after == pytest.approx(1) and rows[2].after == 0


def test_another_candidate_begins_a_sibling_and_goes_on(services, clients, qtbot):
    services.replies.tokens.is_wanted = True
    message = ask(services, qtbot)
    known = services.replies.tokens.of(message.id)
    rival = known.tokens[2].top[1]
    made = services.chats.go_on_from(message, 2, rival)
    begun = known.text_until(2) + rival.piece.decode()
    qtbot.waitUntil(lambda: not services.replies.running)
    assert clients.last.requests[-1].prompt[-1] == {"role": "assistant", "content": begun}
    after = services.database.message(made.id)
    assert after.text.startswith(begun) and after.parent_id == message.parent_id
    assert services.database.message(message.id).text == message.text
    branch = services.replies.tokens.of(made.id)
    assert branch.tokens[2].token == rival.token
    assert branch.text_until(len(branch.tokens)) == after.text
    tag = engine.TokenProb(9, b"<|im_end|>", -1.0)  # looks like an end and is none
    ended = engine.TokenProb(9, b"[fin]", -1.0, is_end=True)
    branch = services.chats.go_on_from(message, 2, tag)
    assert branch.text == known.text_until(2) + "<|im_end|>"
    qtbot.waitUntil(lambda: not services.replies.running)
    made = services.chats.go_on_from(message, 2, ended)
    assert made.text == known.text_until(2) and not services.replies.running


def test_replay_with_the_recorded_seed_says_the_same(services, clients, qtbot):
    first = ask(services, qtbot, sampling={"temperature": 0.3})
    assert first.record["sampling"]["top_k"] == 40  # every value, those of the defaults too
    services.chats.change_sampling(first.conversation_id, {"temperature": 2.0})
    services.chats.replay(first)
    qtbot.waitUntil(lambda: not services.replies.running)
    again = services.database.branch(first.conversation_id)[-1]
    assert again.id != first.id and again.parent_id == first.parent_id
    assert again.text == first.text and again.record["seed"] == first.record["seed"]
    services.chats.regenerate(first)
    qtbot.waitUntil(lambda: not services.replies.running)
    assert services.database.branch(first.conversation_id)[-1].text != first.text


def test_what_a_chat_is_held_to_goes_with_every_request_and_its_replay(services, clients, qtbot):
    kept = {"kind": "regex", "text": "[a-z ]+"}
    message = ask(services, qtbot, constraint=kept)
    assert clients.last.requests[-1].regex == "[a-z ]+"
    services.chats.change(message.conversation_id, params={})
    services.chats.replay(message)
    assert clients.last.requests[-1].regex == "[a-z ]+"
    qtbot.waitUntil(lambda: not services.replies.running)
    ask(services, qtbot, constraint={"kind": "from the future", "text": "x"})
    assert clients.last.requests[-1].regex is None


def test_only_the_last_answers_are_kept():
    log = TokenLog()
    token = engine.TokenProb(1, b"a", math.log(0.5))
    for message_id in range(N_ANSWERS + 2):
        log.begin(message_id, "")
        log.take(message_id, [token])
    assert log.of(0) is None and len(log.of(N_ANSWERS + 1).tokens) == 1
    log.begin(N_ANSWERS + 1, "a")
    assert len(log.of(N_ANSWERS + 1).tokens) == 1  # goes on
    log.begin(N_ANSWERS + 1, "another")
    assert log.of(N_ANSWERS + 1).before == "another"


def test_tokens_are_shown_so_that_they_can_be_told_apart():
    assert [shown(b" a\n"), shown(b""), shown(b"\xe2\x82")] == [" a↵", "∅", "E2 82"]


def test_the_tokens_of_a_thought_that_the_prompt_opened_stand_behind_its_tag(services, qtbot):
    services.engine.client.opens_thought = True
    services.replies.tokens.is_wanted = True
    message = ask(services, qtbot)
    known = services.replies.tokens.of(message.id)
    assert message.text.startswith("<think>\nseed") and known.before == "<think>\n"
    assert known.text_until(len(known.tokens)) == message.text
