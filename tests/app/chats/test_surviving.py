"""Nothing that was stored is lost: to a kill, a full disk, damage or another version."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.chats import ChatDatabase, migrations
from app.errors import DamagedChatsError, NewerFilesError, StorageError

ROOT = Path(__file__).resolve().parents[3]

WRITER = """
import sys
from pathlib import Path
from app.chats import ChatDatabase
db = ChatDatabase(Path(sys.argv[1]))
conversation = db.create_conversation("crash")
running = db.add_message(conversation.id, None, "assistant", "", state="running")
for i in range(100000):
    text = f"message {i} " + "x" * (i % 3000)
    if i % 2:
        db.add_message(conversation.id, None, "user", text)
    else:
        db.update_message(running.id, text=text)
    print(i, flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_kill_loses_nothing_that_was_stored(tmp_path, seed):
    path = tmp_path / "chats.sqlite"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as writer:
        assert writer.stdout is not None
        last, until = -1, random.Random(seed).randrange(20, 120)
        while last < until:
            last = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read().split()
        last = int(rest[-1]) if rest else last
    with ChatDatabase(path) as db:
        assert db.notice == ""
        assert db.recover() == 1 and db.recover() == 0
        running, *messages = db.messages(1)
        assert running.state == "interrupted"
        assert int(running.text.split()[1]) >= last - 1
        numbers = [int(message.text.split()[1]) for message in messages]
        assert numbers == list(range(1, 2 * len(numbers), 2))
        assert numbers[-1] >= last - 1
        assert all(
            m.text.endswith("x" * (n % 3000)) for m, n in zip(messages, numbers, strict=True)
        )
        assert db.search(f'"message {numbers[-1]} "') and db.search("message")


def filled(path, n_conversations=20):
    """Make a database of some size and return its path."""
    with ChatDatabase(path) as db:
        for i in range(n_conversations):
            conversation = db.create_conversation(f"conversation {i}")
            parent = None
            for j in range(6):
                text = f"text {i}.{j} " + "filler " * 150
                parent = db.add_message(conversation.id, parent, "user", text).id
    return path


def test_a_full_disk_is_said_and_loses_nothing(tmp_path):
    with ChatDatabase(tmp_path / "chats.sqlite") as db:
        conversation = db.create_conversation("full")
        message = db.add_message(conversation.id, None, "user", "kept")
        n_pages = db._read("PRAGMA page_count")[0][0]
        db._read(f"PRAGMA max_page_count = {n_pages}")
        for attempt in (
            lambda: db.add_message(conversation.id, message.id, "user", "y" * 100_000),
            lambda: db.update_message(message.id, text="z" * 100_000),
        ):
            with pytest.raises(StorageError, match="disk is full"):
                attempt()
        assert [m.text for m in db.branch(conversation.id)] == ["kept"]
        db._read("PRAGMA max_page_count = 1000000")
        db.add_message(conversation.id, message.id, "user", "y" * 100_000)
        assert [len(m.text) for m in db.branch(conversation.id)] == [4, 100_000]


@pytest.mark.parametrize("content", [b"x", b"this is no database " * 500, bytes(8192)])
def test_a_file_that_is_no_database_is_set_aside(tmp_path, content):
    path = tmp_path / "chats.sqlite"
    path.write_bytes(content)
    with ChatDatabase(path) as db:
        db.create_conversation("works")
        assert "damaged" in db.notice and "0 messages" in db.notice
    aside = [p for p in tmp_path.iterdir() if ".damaged-" in p.name]
    assert [p.read_bytes() for p in aside] == [content]
    assert aside[0].name in db.notice


def test_what_damage_left_is_carried_over(tmp_path):
    path = filled(tmp_path / "chats.sqlite")
    whole = path.read_bytes()
    damaged = bytearray(whole)
    middle = len(whole) // 2 // 4096 * 4096
    damaged[middle : middle + 8192] = os.urandom(8192)
    path.write_bytes(damaged)
    path.with_name(path.name + "-wal").touch()  # as after a crash: looked at thoroughly
    with ChatDatabase(path) as db:
        assert "damaged" in db.notice
        kept = [m for c in db.conversations() for m in db.messages(c.id)]
        assert len(kept) > 60
        assert all(m.text.startswith("text ") for m in kept)
        assert all(db.branch(c.id) for c in db.conversations() if db.messages(c.id))
        assert db.search("filler")
        db.add_message(kept[0].conversation_id, kept[0].id, "user", "goes on")
    aside = [p for p in tmp_path.iterdir() if ".damaged-" in p.name and p.suffix != ".shm"]
    assert bytes(damaged) in [p.read_bytes() for p in aside]


def test_any_damage_ends_in_a_working_database(tmp_path):
    whole = filled(tmp_path / "whole.sqlite", 4).read_bytes()
    chance = random.Random(5)
    for round_no in range(25):
        path = tmp_path / f"{round_no}" / "chats.sqlite"
        path.parent.mkdir()
        damaged = bytearray(whole)
        for _ in range(chance.choice([1, 3, 30])):
            at = chance.randrange(len(damaged))
            damaged[at : at + 64] = chance.randbytes(64)
        path.write_bytes(damaged[: chance.choice([len(damaged), len(damaged) // 2])])
        path.with_name("chats.sqlite-wal").touch()
        with ChatDatabase(path) as db:
            made = db.create_conversation("works")
            db.add_message(made.id, None, "user", "text")
            assert [m.text for m in db.branch(made.id)] == ["text"]


def test_damage_found_later_is_named(tmp_path):
    path = filled(tmp_path / "chats.sqlite")
    whole = bytearray(path.read_bytes())
    with ChatDatabase(path) as db:
        root = db._read("SELECT rootpage FROM sqlite_master WHERE name = 'messages'")[0][0]
    at = (root - 1) * 4096
    whole[at : at + 4096] = b"\xff" * 4096
    with ChatDatabase(tmp_path / "other.sqlite") as db:
        db.close()
        path.write_bytes(whole)
    raw = sqlite3.connect(path, isolation_level=None)
    db._connection = raw
    with pytest.raises(DamagedChatsError, match="damaged on the disk"):
        db.messages(1)


def test_a_newer_file_is_left_alone(tmp_path):
    path = filled(tmp_path / "chats.sqlite", 1)
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {migrations.VERSION + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(NewerFilesError, match="newer version"):
        ChatDatabase(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["chats.sqlite"]


def test_an_older_file_is_copied_and_taken_further(tmp_path, monkeypatch):
    path = filled(tmp_path / "chats.sqlite", 1)
    added = "ALTER TABLE conversations ADD COLUMN colour TEXT NOT NULL DEFAULT 'red';"
    monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, added))
    monkeypatch.setattr(migrations, "VERSION", 2)
    with ChatDatabase(path) as db:
        assert db._read("SELECT colour FROM conversations") == [("red",)]
        assert len(db.messages(1)) == 6
    with sqlite3.connect(tmp_path / "chats.sqlite.version-1") as copy:
        assert copy.execute("SELECT count(*) FROM messages").fetchone() == (6,)
    copy.close()


def test_a_step_that_fails_changes_nothing(tmp_path, monkeypatch):
    path = filled(tmp_path / "chats.sqlite", 1)
    failing = "ALTER TABLE conversations ADD COLUMN colour TEXT; SELECT * FROM nowhere;"
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "STEPS", (*migrations.STEPS, failing))
        patch.setattr(migrations, "VERSION", 2)
        with pytest.raises(StorageError):
            ChatDatabase(path)
    with ChatDatabase(path) as db:
        assert db.notice == "" and len(db.messages(1)) == 6


def test_a_file_that_another_program_holds(tmp_path, monkeypatch):
    path = filled(tmp_path / "chats.sqlite", 1)
    with ChatDatabase(path) as db:
        db._read("PRAGMA busy_timeout = 50")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        start = time.monotonic()
        with pytest.raises(StorageError, match="Another program"):
            db.create_conversation("x")
        assert time.monotonic() - start < 3
        other.execute("COMMIT")
        other.close()
        db.create_conversation("x")


def test_places_where_nothing_can_be_stored(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError):
        ChatDatabase(tmp_path / "file" / "chats.sqlite")
    (tmp_path / "folder.sqlite").mkdir()
    with pytest.raises(StorageError):
        ChatDatabase(tmp_path / "folder.sqlite")


def test_a_closed_database_says_so(tmp_path):
    db = ChatDatabase(tmp_path / "chats.sqlite")
    db.close()
    for call in (db.conversations, lambda: db.search("x"), lambda: db.create_conversation("x")):
        with pytest.raises(StorageError):
            call()


def test_a_backup_is_a_database_of_its_own(tmp_path):
    with ChatDatabase(filled(tmp_path / "chats.sqlite", 2)) as db:
        db.back_up(tmp_path / "backup.sqlite")
        db.back_up(tmp_path / "backup.sqlite")
        with pytest.raises(StorageError):
            db.back_up(tmp_path / "missing" / "backup.sqlite")
    with ChatDatabase(tmp_path / "backup.sqlite") as copy:
        assert len(copy.conversations()) == 2 and len(copy.messages(1)) == 6
