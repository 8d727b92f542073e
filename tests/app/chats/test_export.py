"""Markdown reads well, and JSON brings every branch, record and field back."""

import dataclasses
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.chats import ChatDatabase
from app.chats.export import json_text, markdown, read_json
from app.errors import ExchangeError, StorageError


@pytest.fixture
def db(tmp_path):
    with ChatDatabase(tmp_path / "chats.sqlite") as database:
        yield database


@pytest.fixture
def other(tmp_path):
    with ChatDatabase(tmp_path / "other.sqlite") as database:
        database.create_conversation("so that ids differ")
        yield database


def tree(db):
    conversation = db.create_conversation(
        "Über 日本", pinned=True, model="m", params={"temperature": 0.5}, draft="d", folder="f"
    )
    q = db.add_message(conversation.id, None, "user", "Question\n\n# not a title")
    record = {"seed": 3, "reasoning": "I think\n\nso", "timings": {"read_ms": 1.5}}
    db.add_message(conversation.id, q.id, "assistant", "one", **record)
    two = db.add_message(conversation.id, q.id, "assistant", "two 🔥", "interrupted")
    db.add_message(conversation.id, two.id, "user", "more")
    db.update_conversation(conversation.id, leaf_id=two.id)
    return db.conversation(conversation.id)


def test_an_answer_that_was_running_is_interrupted_where_nobody_writes_it(db, other):
    conversation = tree(db)
    db.add_message(conversation.id, conversation.leaf_id, "assistant", "so far", "running")
    (copy,) = read_json(other, json_text(db, [conversation.id]))
    assert [m.state for m in other.messages(copy.id)].count("interrupted") == 2
    assert "running" not in {m.state for m in other.messages(copy.id)}


def test_markdown(db):
    conversation = tree(db)
    branch = db.branch(conversation.id, db.messages(conversation.id)[1].id)
    text = markdown(conversation, branch, reasoning=True)
    assert text.startswith("# Über 日本\n\n*20")
    assert "## You\n\nQuestion\n\n# not a title\n\n## Model\n\n> I think\n>\n> so\n\none\n" in text
    assert "I think" not in markdown(conversation, branch)
    assert markdown(dataclasses.replace(conversation, title=""), []).startswith("# Untitled")


def shape(db, conversation):
    """All that must survive, without ids."""
    messages = db.messages(conversation.id)
    place = {message.id: i for i, message in enumerate(messages)} | {None: None}
    kept = [(place[m.parent_id], m.role, m.text, m.state, m.record, m.created) for m in messages]
    fields = dataclasses.asdict(conversation) | {"id": 0, "leaf_id": place[conversation.leaf_id]}
    return fields, kept


def test_json_loses_nothing(db, other):
    conversation = tree(db)
    (back,) = read_json(other, json_text(db, [conversation.id]))
    assert back.id != conversation.id
    assert shape(other, back) == shape(db, conversation)
    assert [m.text for m in other.branch(back.id)] == ["Question\n\n# not a title", "two 🔥"]
    assert other.search("two 🔥")


def test_many_at_once_and_empty_ones(db, other):
    ids = [tree(db).id, db.create_conversation("empty").id]
    assert [c.title for c in read_json(other, json_text(db, ids).encode())] == [
        "Über 日本",
        "empty",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"format": "other"}',
        "[" * 100_000,
        b"\xff\xfe",
        '{"format": "inglenook conversations", "version": 2}',
        '{"format": "inglenook conversations", "version": 1}',
        '{"format": "inglenook conversations", "version": 1, "conversations": [{}]}',
        '{"format": "inglenook conversations", "version": 1, "conversations": [3]}',
        '{"format": "inglenook conversations", "version": 1, "conversations": 3}',
    ],
)
def test_other_files_are_refused(db, text):
    with pytest.raises(ExchangeError):
        read_json(db, text)
    assert db.conversations() == []


wrong = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3) | st.just("user"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(change=st.data())
def test_a_changed_file_is_read_whole_or_not_at_all(db, change):
    if not db.conversations():
        tree(db)
    n_before = len(db.conversations())
    whole = json.loads(json_text(db, [db.conversations()[-1].id]))
    target = whole["conversations"][0]
    if change.draw(st.booleans()):
        target = target["messages"][change.draw(st.integers(0, 3))]
    target[change.draw(st.sampled_from(sorted(target)))] = change.draw(wrong)
    try:
        (made,) = read_json(db, json.dumps(whole))
    except ExchangeError:
        assert len(db.conversations()) == n_before
    else:
        assert len(db.conversations()) == n_before + 1
        assert json.loads(json_text(db, [made.id]))
        db.branch(made.id)


def test_a_full_disk_in_the_middle_stores_nothing(db):
    conversation = tree(db)
    text = json_text(db, [conversation.id] * 50)
    db._read(f"PRAGMA max_page_count = {db._read('PRAGMA page_count')[0][0] + 2}")
    with pytest.raises(StorageError, match="disk is full"):
        read_json(db, text)
    assert len(db.conversations()) == 1
