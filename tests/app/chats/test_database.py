"""Conversations are stored, found, branched, trashed and brought back exactly."""

import threading
import time

import pytest

from app.chats import ChatDatabase, title_of
from tests.make.bounds import bounded


@pytest.fixture
def db(tmp_path):
    with ChatDatabase(tmp_path / "Größe 会話" / "chats.sqlite") as database:
        yield database


def talk(db, *texts):
    """Store a conversation with user and assistant in turn; returns it and its messages."""
    conversation = db.create_conversation(title_of(texts[0]))
    parent, messages = None, []
    for i, text in enumerate(texts):
        role = ("user", "assistant")[i % 2]
        messages.append(db.add_message(conversation.id, parent, role, text))
        parent = messages[-1].id
    return db.conversation(conversation.id), messages


def test_a_conversation_keeps_every_field(db):
    params = {"temperature": 0.8, "samplers": ["top_k", "temperature"], "名": "ü"}
    made = db.create_conversation(
        "Titel “ü” 日本", pinned=True, model="/m/ö.gguf", params=params, draft="halb", folder="f"
    )
    assert db.conversation(made.id) == made
    assert (made.pinned, made.params, made.draft, made.folder) == (True, params, "halb", "f")
    assert abs(made.created - time.time()) < 5 and made.created == made.updated
    changed = db.update_conversation(made.id, title="neu", pinned=False, draft="")
    assert (changed.title, changed.pinned, changed.draft) == ("neu", False, "")
    assert (changed.params, changed.updated) == (params, made.updated)


def test_messages_keep_text_state_and_record(db):
    conversation, _ = talk(db, "hi")
    odd = "a\0b \ud800 🔥\r\n\ttext"
    message = db.add_message(
        conversation.id, conversation.leaf_id, "assistant", odd, state="running", seed=7
    )
    assert message.text == "a\0b \ufffd 🔥\r\n\ttext"
    db.update_message(message.id, text="more", record={"counts": {"n_read": 3}})
    db.update_message(message.id, state="finished", record={"stop": "eos"})
    stored = db.message(message.id)
    assert (stored.text, stored.state) == ("more", "finished")
    assert stored.record == {"seed": 7, "counts": {"n_read": 3}, "stop": "eos"}


def test_a_pair_of_surrogates_is_one_character(db):
    conversation, _ = talk(db, "\ud83d\udd25")
    assert db.branch(conversation.id)[0].text == "🔥"


def test_the_list_is_pinned_first_then_last_used(db):
    first, _ = talk(db, "first")
    second, _ = talk(db, "second")
    third, _ = talk(db, "third")
    db.update_conversation(third.id, pinned=True)
    assert [c.title for c in db.conversations()] == ["third", "second", "first"]
    db.add_message(first.id, first.leaf_id, "assistant", "answer")
    db.update_conversation(second.id, draft="typing does not move it")
    assert [c.title for c in db.conversations()] == ["third", "first", "second"]


def test_branches_and_siblings(db):
    conversation, (question, answer, more) = talk(db, "q", "a1", "q2")
    other = db.add_message(conversation.id, question.id, "assistant", "a2")
    assert [m.text for m in db.branch(conversation.id)] == ["q", "a2"]
    assert [m.text for m in db.siblings(answer.id)] == ["a1", "a2"]
    assert [m.text for m in db.branch(conversation.id, more.id)] == ["q", "a1", "q2"]
    assert db.newest_leaf(answer.id) == more.id and db.newest_leaf(question.id) == other.id
    db.update_conversation(conversation.id, leaf_id=db.newest_leaf(answer.id))
    assert [m.text for m in db.branch(conversation.id)] == ["q", "a1", "q2"]
    edited = db.add_message(conversation.id, None, "user", "Q")
    assert [m.text for m in db.siblings(edited.id)] == ["q", "Q"]
    assert [m.text for m in db.messages(conversation.id)] == ["q", "a1", "q2", "a2", "Q"]


def test_a_message_can_be_trashed_and_brought_back(db):
    conversation, (question, answer, more) = talk(db, "q", "a1", "q2")
    db.trash_message(answer.id)
    assert [m.text for m in db.branch(conversation.id)] == ["q"]
    assert [m.text for m in db.messages(conversation.id)] == ["q"]
    db.restore_message(answer.id)
    assert [m.text for m in db.branch(conversation.id)] == ["q", "a1", "q2"]
    db.trash_message(more.id)
    db.trash_message(answer.id)
    db.restore_message(answer.id)  # what was trashed on its own stays there
    assert [m.text for m in db.branch(conversation.id)] == ["q", "a1"]
    db.restore_message(more.id)
    assert [m.text for m in db.branch(conversation.id)] == ["q", "a1", "q2"]
    db.add_message(conversation.id, question.id, "assistant", "a2")
    db.trash_message(answer.id)  # not on show: the branch stays
    assert [m.text for m in db.branch(conversation.id)] == ["q", "a2"]
    db.restore_message(answer.id)
    db.trash_message(answer.id)
    assert [m.text for m in db.branch(conversation.id)] == ["q", "a2"]
    db.trash_message(question.id)
    assert db.branch(conversation.id) == []


def test_the_trash_keeps_for_thirty_days(db, monkeypatch):
    conversation, (question, *_) = talk(db, "keep me", "yes")
    db.trash(conversation.id)
    assert db.conversations() == [] and db.search("keep") == []
    assert [c.id for c in db.trashed()] == [conversation.id]
    db.restore(conversation.id)
    assert [c.id for c in db.conversations()] == [conversation.id] and db.search("keep")
    db.trash(conversation.id)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 29 * 86400)
    assert db.empty_trash() == 0
    monkeypatch.setattr(time, "time", lambda: now + 31 * 86400)
    assert db.empty_trash() == 1
    with pytest.raises(KeyError):
        db.message(question.id)
    assert db._read("SELECT count(*) FROM message_index WHERE message_index MATCH 'keep'") == [(0,)]


def test_mistakes_of_the_caller_are_named(db):
    one, (message,) = talk(db, "q")
    two, _ = talk(db, "other")
    with pytest.raises(ValueError, match="did you mean 'title'"):
        db.update_conversation(one.id, titel="x")
    with pytest.raises(ValueError, match="no role"):
        db.add_message(one.id, None, "robot", "x")
    with pytest.raises(ValueError, match="did you mean 'finished'"):
        db.update_message(message.id, state="finish")
    with pytest.raises(ValueError, match="not in conversation"):
        db.add_message(two.id, message.id, "user", "x")
    with pytest.raises(ValueError, match="not in conversation"):
        db.update_conversation(two.id, leaf_id=message.id)
    with pytest.raises(TypeError):
        db.update_message(message.id, record={"x": object()})
    for call in (
        lambda: db.conversation(99),
        lambda: db.message(99),
        lambda: db.trash(99),
        lambda: db.add_message(99, None, "user", "x"),
        lambda: db.update_conversation(99, title="x"),
        lambda: db.update_message(99, text="x"),
    ):
        with pytest.raises(KeyError):
            call()
    assert len(db.messages(one.id)) == len(db.messages(two.id)) == 1


def test_many_threads_may_write(db):
    conversation, _ = talk(db, "start")

    def write(n):
        for i in range(20):
            db.add_message(conversation.id, None, "user", f"{n}.{i}")

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(db.messages(conversation.id)) == 81


def test_a_long_conversation_opens_fast(db):
    conversation = db.create_conversation("long")
    rows = [(conversation.id, i or None, f"message {i}") for i in range(10_000)]
    with db._write() as connection:
        connection.executemany(
            "INSERT INTO messages (conversation_id, parent_id, role, text, state, created)"
            " VALUES (?, ?, 'user', ?, 'finished', 0)",
            rows,
        )
    with bounded(0.3):
        branch = db.branch(conversation.id, 10_000)
    assert [m.text for m in branch[:2] + branch[-1:]] == ["message 0", "message 1", "message 9999"]


@pytest.mark.parametrize(
    "question, title",
    [
        ("Hello", "Hello"),
        ("\n\n## Why **is** it?\nmore", "Why **is** it?"),
        ("", ""),
        ("  many   spaces\there ", "many spaces here"),
        ("x" * 100, "x" * 59 + "…"),
        ("word " * 30, "word word word word word word word word word word word…"),
        ("日" * 80, "日" * 59 + "…"),
    ],
)
def test_titles(question, title):
    assert title_of(question) == title
