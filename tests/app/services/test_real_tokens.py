"""Replay and another candidate on the starter model, as the window asks for them."""

import json

import pytest

from app.services.token_log import candidates
from tests.make import window as make

LONG = "Tell me, in two plain sentences, how a candle burns and why its flame points upwards."


@pytest.fixture
def services(tmp_path, qapp, qtbot):
    with make.starter_services(tmp_path, qtbot) as made:
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


SCHEMA = """{"type": "object", "properties": {"colour": {"type": "string", "maxLength": 9},
"sure": {"type": "boolean"}}, "required": ["colour", "sure"], "additionalProperties": false}"""


def test_the_grammar_is_said_to_cut_and_a_branch_stays_inside_it(services, qtbot):
    kept = {"kind": "json_schema", "text": SCHEMA}
    params = {"n_predict": 60, "constraint": kept, "sampling": {"temperature": 0.5}}
    chat = services.chats.start(params=params).id
    ask = "Which colour has the sky? Answer with JSON."
    first = answer(services, qtbot, lambda: services.chats.ask(chat, ask), chat)
    assert isinstance(json.loads(first.text)["sure"], bool)
    known = services.replies.tokens.of(first.id)
    rows = candidates(known.tokens[0])  # a small model begins with a word
    assert [row.cut_by for row in rows if not row.text.startswith("{")] == ["grammar"] * (
        len([row for row in rows if not row.text.startswith("{")])
    )
    assert next(row for row in rows if row.is_chosen).cut_by == ""
    assert all(row.source.is_forbidden for row in rows if row.cut_by == "grammar")
    at, rival = next(
        (i, row.source)
        for i, token in enumerate(known.tokens)
        for row in candidates(token)
        if i > 3 and not row.is_chosen and row.cut_by != "grammar" and row.text.isalpha()
    )
    branch = answer(services, qtbot, lambda: services.chats.go_on_from(first, at, rival), chat)
    assert branch.text.startswith(known.text_until(at) + rival.piece.decode())
    assert isinstance(json.loads(branch.text)["sure"], bool)
    assert branch.record["timings"]["n_read"] == 1


def test_ends_are_known_by_the_engines_word(services, qtbot):
    params = {"n_predict": 40, "sampling": {"temperature": 0}}
    chat = services.chats.start(params=params).id
    ask = "What is 2 + 2? Answer with one number and nothing else."
    first = answer(services, qtbot, lambda: services.chats.ask(chat, ask), chat)
    known = services.replies.tokens.of(first.id)
    assert first.record["stop_type"] == "eos" and known.tokens[-1].is_end
    assert known.text_until(len(known.tokens)) == first.text
    at, end = next(
        (i, row.source)
        for i, token in enumerate(known.tokens[:-1])
        for row in candidates(token)
        if row.source.is_end
    )
    made = services.chats.go_on_from(first, at, end)
    assert made.text == known.text_until(at) and not services.replies.running
